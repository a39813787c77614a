"""Whether there is room for another generation: bytes, and search indexes, as far as the server tells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from brain.knowledge.pin import Model, Pin
from worker.errors import KnowledgeError, Retryable, Unsupported
from worker.mongo.driver import Database

FREE_INDEXES: Final = 3
FLEX_INDEXES: Final = 10
"""Search indexes that a cluster of these tiers may have (MongoDB Atlas limits). No command tells the tier."""

FREE_BYTES: Final = 512 * 1024 * 1024
"""What a free cluster holds, data and indexes together (MongoDB Atlas limits)."""

_NUMBER: Final = 4  # bytes of a float32


@dataclass(frozen=True, slots=True)
class Capacity:
    """`needed` bytes for the new chunks, about; `held` by the database now; `free` on the server's disk, if told.

    `search_indexes` exist in this database now; None on a server without vector search.
    """

    needed: int
    held: int
    free: int | None
    search_indexes: int | None

    @property
    def short(self) -> str | None:
        """Why there is no room, if that is certain."""
        if self.free is not None and self.needed > self.free:
            return f"the new chunks need about {_mb(self.needed)} and {_mb(self.free)} are free on the server's disk"
        return None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may fail on a small tier of Atlas."""
        if self.search_indexes is None:
            return ()
        told: list[str] = []
        for tier, most in (("a free", FREE_INDEXES), ("a Flex", FLEX_INDEXES)):
            if self.search_indexes >= most:
                told.append(f"{self.search_indexes} search indexes exist, and {tier} cluster may have {most}")
        if self.free is None and self.held + self.needed > FREE_BYTES:
            together = _mb(self.held + self.needed)
            told.append(f"the database would hold about {together}, and a free cluster holds {_mb(FREE_BYTES)}")
        return tuple(told)


async def capacity(database: Database, active: Pin, model: Model) -> Capacity:
    """Ask the server. Raises Retryable when nothing answers, Refused where the role may not ask."""
    names = await database.collections()
    # Of a collection that is not there some servers tell zeros, others an error.
    chunks = await database.command({"collStats": active.collection}) if active.collection in names else {}
    wider = _NUMBER * (model.dimensions - active.dimensions)
    needed = int(chunks.get("size", 0)) + int(chunks.get("count", 0)) * wider
    stats = await database.command({"dbStats": 1})
    held = int(stats.get("dataSize", 0)) + int(stats.get("indexSize", 0))
    total = stats.get("fsTotalSize")
    free = None if total is None else int(total) - int(stats.get("fsUsedSize", 0))
    return Capacity(max(0, needed), held, free, await _search_indexes(database, names))


async def _search_indexes(database: Database, names: Sequence[str]) -> int | None:
    """How many there are in this database; None where there can be none, or nobody may ask."""
    count = 0
    for collection in names:
        try:
            listed = await database.aggregate(collection, [{"$listSearchIndexes": {}}], read_concern="local")
        except Unsupported:
            return None
        except Retryable:
            raise
        except KnowledgeError:  # a collection that this role may not read
            continue
        count += len(listed)
    return count


def _mb(size: int) -> str:
    return f"{size / 1024 / 1024:,.0f} MB"
