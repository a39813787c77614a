"""Publish: store what is ready, one transaction at a time.

Transactions of one leader would all meet at the lease row that fences them, so they queue here and not in the database.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from worker.model import Leadership, Outcome, Publication
from worker.ports import KnowledgeStore, Meter

MOST_CHUNKS: Final = 500
"""Chunk rows of one transaction: 500 rows of 1,536 float32 are about 3 MB, far below MongoDB's 16 MB an oplog entry."""


class Publisher:
    """Stores publications under one leadership."""

    def __init__(self, store: KnowledgeStore, leadership: Leadership, meter: Meter) -> None:
        self._store = store
        self._leadership = leadership
        self._meter = meter
        self._turn = asyncio.Lock()

    async def publish(self, publications: Sequence[Publication]) -> Sequence[Outcome]:
        """What became of each publication.

        Raises FencedOff, or Retryable: of the transaction that failed nothing is stored.
        """
        outcomes: list[Outcome] = []
        for batch in _batches(publications):
            async with self._turn:
                stored = await self._store.publish(batch, self._leadership)
            outcomes += stored
            for publication, outcome in zip(batch, stored, strict=True):
                if outcome != "superseded":
                    self._count(publication)
        return outcomes

    def _count(self, publication: Publication) -> None:
        delta = publication.delta
        self._meter.chunks("written", len(delta.write))
        self._meter.chunks("rewritten", len(delta.rewrite))
        self._meter.chunks("removed", len(delta.remove))
        self._meter.chunks("kept", delta.kept)


def _batches(publications: Sequence[Publication]) -> Iterator[Sequence[Publication]]:
    """Whole documents, as many as fit; a document larger than the limit goes alone."""
    batch: list[Publication] = []
    rows = 0
    for publication in publications:
        delta = publication.delta
        size = len(delta.write) + len(delta.rewrite) + len(delta.remove)
        if batch and rows + size > MOST_CHUNKS:
            yield batch
            batch, rows = [], 0
        batch.append(publication)
        rows += size
    if batch:
        yield batch
