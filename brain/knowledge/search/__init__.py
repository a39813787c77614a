"""Search engines over the chunks: one port, two engines with the same rules.

Score: (1 + cosine) / 2, from 0 to 1. Ties: score first, then chunk id. Filters: equality on `sport` and `docType`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from brain.knowledge.chunk import Vector

Engine = Literal["atlas", "exact"]

MOST_LIMIT: Final = 10_000
"""Most hits of one search: `$vectorSearch` takes at most so many candidates, and no fewer than hits."""


def checked_limit(limit: int) -> int:
    """The limit; raises ValueError for one outside 1 to MOST_LIMIT, as Atlas refuses it."""
    if not 1 <= limit <= MOST_LIMIT:
        message = f"the limit must be between 1 and {MOST_LIMIT:,}"
        raise ValueError(message)
    return limit


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

        Raises ValueError when the vector is not of the index's width, all zero or not finite, or the limit is out of
        bounds; IndexMissing, IndexNotReady or IndexUnusable when there is nothing to search with; Unreachable,
        Unavailable or Refused when the database does not answer so.
        """
        ...

    async def holds(self, chunk_id: str, vector: Vector, where: Filter) -> bool:
        """Whether a search with this filter finds this chunk by this vector, its own. Raises what `search` raises."""
        ...

    async def close(self) -> None:
        """Give back what is held; no search comes after it."""
        ...
