"""How hard a trick is: free words in the data, one of four in an answer.

The words are the app's: its code matches loosely on beginner, easy or the digit 1, and the mobile app styles the four.
"""

from typing import Final, Literal

from brain.knowledge.domain.fields import Fields

Difficulty = Literal["beginner", "intermediate", "advanced", "expert"]

WORDS: Final[dict[Difficulty, tuple[str, ...]]] = {
    "beginner": ("beginner", "easy", "1"),
    "intermediate": ("intermediate", "medium"),
    "advanced": ("advanced", "hard"),
    "expert": ("expert", "pro"),
}
"""What each is written as; a value that holds one of the words anywhere means it, the first in this order."""


def difficulty(value: object) -> Difficulty | None:
    """The difficulty that a text, or a number, means; None for any other."""
    text = Fields({"difficulty": value}).line("difficulty").lower()
    return next((key for key, words in WORDS.items() if any(word in text for word in words)), None)


def difficulty_pattern(key: Difficulty) -> dict[str, str]:
    """The condition that a stored text means it. It finds a few more than `difficulty` grants ("hardly easy")."""
    return {"$regex": "|".join(WORDS[key]), "$options": "i"}
