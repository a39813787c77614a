"""Where the border between relevant and not lies, measured on the sample with the local model."""

from collections.abc import Callable
from typing import Final

import pytest

from brain.knowledge.relevance import least_score
from tests.support.figures import FIGURES
from tests.support.questions import ANSWERED, UNANSWERED
from tests.support.sample_chunks import PIN
from tests.support.tool_world import ToolWorld

LEAST_CUT: Final = 0.7
"""The share of questions about something else that find nothing; some words are near ("cheap flights to Tokyo")."""


@pytest.mark.slow
async def test_the_border_keeps_right_answers_and_cuts_most_of_the_rest(
    knowing: ToolWorld, record_property: Callable[[str, object], None]
) -> None:
    """The figures of `brain/knowledge/relevance.py`."""
    border = least_score(PIN.model)
    lowest = 1.0
    for question, title in ANSWERED:
        hits = (await knowing.knowledge.search(question, limit=10)).hits
        right = [hit.score for hit in hits if title.lower() in str(hit.fields["title"]).lower()]
        assert right, f"nothing right for {question!r}"
        assert right[0] >= border, f"{question!r} is cut at {right[0]:.3f}"
        lowest = min(lowest, right[0])
    nearest = [(await knowing.knowledge.search(question, limit=1)).hits[0].score for question in UNANSWERED]
    cut = sum(score < border for score in nearest)
    assert cut >= LEAST_CUT * len(UNANSWERED)
    told = f"lowest right answer {lowest:.3f}; {cut} of {len(UNANSWERED)} other questions find nothing"
    record_property(FIGURES, f"relevance border {border} of {PIN.model}: {told}")
