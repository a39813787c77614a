"""Reciprocal rank fusion: several rankings of the same things become one. Pure.

Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
Methods", SIGIR 2009; k = 60 is their constant and the one that MongoDB's `$rankFusion` fixes.
"""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

K: Final = 60

T = TypeVar("T", bound=Hashable)


def fused(rankings: Sequence[Sequence[T]], weights: Sequence[float] | None = None) -> list[tuple[T, float]]:
    """Each thing once with its score, the sum of `weight / (K + rank)` over the rankings that hold it; best first.

    A ranking that holds a thing twice counts its better rank. Equal scores keep the order in which the things were
    first met, ranking by ranking. Weights are 1 when none are given; raises ValueError for another number of them.
    """
    scores: dict[T, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, thing in enumerate(dict.fromkeys(ranking), start=1):
            scores[thing] = scores.get(thing, 0.0) + weight / (K + rank)
    return sorted(scores.items(), key=lambda item: -item[1])
