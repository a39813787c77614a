"""How far a rider is with a trick: every spelling of a personal trick's `checked`, read as one of three words.

The mobile app stores "Completed" for a landed trick and the companion's tool "Complete"; the oldest rows hold booleans.
Nobody may compare the stored value itself.
"""

from typing import Final, Literal

from brain.knowledge.domain.fields import is_word

Progress = Literal["not_started", "learning", "landed"]

_LANDED: Final = ("completed", "complete", "landed", "mastered")

Written = Literal["Complete", "To Do"]
"""What a companion writes; the mobile app reads both (kept for compatibility)."""

TO_DO: Final[Written] = "To Do"


def progress(checked: object) -> Progress:
    """What `checked` means; anything unknown is not started."""
    if checked is True or any(is_word(checked, word) for word in _LANDED):
        return "landed"
    return "learning" if is_word(checked, "learning") else "not_started"
