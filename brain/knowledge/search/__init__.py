"""Search engines over the chunks: one port, two engines with the same rules.

Score: (1 + cosine) / 2, from 0 to 1. Ties: score first, then chunk id. Filters: equality on `sport` and `docType`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from brain.knowledge.chunk import Vector

Engine = Literal["atlas", "exact"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which chunks may be found; None is any."""

    sport: str | None = None
    doc_type: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One found chunk: its score and its stored fields (without the vector)."""

    id: str
    score: float
    fields: Mapping[str, object]


class SearchEngine(Protocol):
    """Finds the chunks nearest to a vector."""

    @property
    def name(self) -> Engine:
        """Which engine answers."""
        ...

    async def search(self, vector: Vector, limit: int, where: Filter) -> Sequence[Hit]:
        """The nearest `limit` chunks, best first.

        Raises ValueError when the vector is not of the index's width, all zero or not finite; IndexMissing or
        Unavailable when there is nothing to search with.
        """
        ...
