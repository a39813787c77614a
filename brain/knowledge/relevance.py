"""From which score on a hit has to do with the question.

Scores are (1 + cosine) / 2, so unrelated texts lie near 0.5 to 0.7, and each model has a border of its own.

MiniLM: measured over the sample's chunks with the questions of `tests/support/questions.py`, see
`tests/integration/test_relevance.py`. Of 32 questions with an answer the first right hits score at least 0.661; of 36
questions about anything else 27 have no hit from 0.65 on.

OpenAI's models are not measured here: 0.6 is a cosine of 0.2, low enough that nothing right should be cut. Measure them
on real questions before relying on it.
"""

from typing import Final

from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL

_LEAST: Final = {MINILM.name: 0.65, OPENAI_SMALL.name: 0.6, OPENAI_LARGE.name: 0.6}


def least_score(model: str) -> float:
    """The lowest score of a relevant hit under this model; 0, which cuts nothing, for one that was not measured."""
    return _LEAST.get(model, 0.0)
