"""Publish: store what is ready, one transaction at a time, and everything that is ready in it (group commit).

Transactions of one leader would all meet at the lease row that fences them, so they queue here and not in the database;
and since half the price of a transaction is fixed, whoever gets the turn stores what the others brought meanwhile too.
What one document makes impossible (a key that somebody's unique index allows once, a row too large) is found by storing
the documents of its transaction alone.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from worker.errors import DuplicateKey, KnowledgeError, Poison, Unstorable
from worker.model import Leadership, Outcome, Publication
from worker.pipeline.around import Around
from worker.ports import KnowledgeStore

MOST_CHUNKS: Final = 500
"""Chunk rows of one transaction: 500 rows of 1,536 float32 are about 3 MB, far below MongoDB's 16 MB an oplog entry."""

TRIES_ALONE: Final = 3
"""Tries of one document by itself, with a wait between them, that meet a key which is there: it will not pass."""


@dataclass(slots=True)
class _Brought:
    """What one caller brought, and what became of it: outcomes, or why nothing of it is stored.

    `alone`: it shares its transaction with nobody, so that what goes wrong is its own fault.
    """

    publications: Sequence[Publication]
    rows: int
    alone: bool = False
    outcomes: Sequence[Outcome] | None = None
    error: KnowledgeError | None = None

    @property
    def waits(self) -> bool:
        return self.outcomes is None and self.error is None


class Publisher:
    """Stores publications under one leadership; `told` of each that was not too late."""

    def __init__(
        self,
        store: KnowledgeStore,
        leadership: Leadership,
        around: Around,
        told: Callable[[Publication], None] = lambda _publication: None,
    ) -> None:
        self._store = store
        self._leadership = leadership
        self._around = around
        self._told = told
        self._turn = asyncio.Lock()
        self._queue: list[_Brought] = []

    async def publish(self, publications: Sequence[Publication]) -> Sequence[Outcome | Poison]:
        """What became of each publication, or why it can never be stored; waits through what passes.

        Raises FencedOff and other Fatal errors; of the transaction that failed nothing is stored.
        """
        became: list[Outcome | Poison] = []
        for batch, rows in _batches(publications):
            became += await self._store_batch(batch, rows)
        return became

    async def _store_batch(self, batch: Sequence[Publication], rows: int) -> Sequence[Outcome | Poison]:
        stored = await self._around.persist("database", lambda: self._attempt(_Brought(batch, rows)))
        if not isinstance(stored, Poison):
            return stored
        return [await self._store_alone(publication) for publication in batch]

    async def _store_alone(self, publication: Publication) -> Outcome | Poison:
        tries = 0

        async def attempt() -> Sequence[Outcome] | Poison:
            nonlocal tries
            tries += 1
            brought = _Brought([publication], publication.delta.rows, alone=True)
            return await self._attempt(brought, last=tries == TRIES_ALONE)

        stored = await self._around.persist("database", attempt)
        return stored if isinstance(stored, Poison) else stored[0]

    async def _attempt(self, brought: _Brought, *, last: bool = True) -> Sequence[Outcome] | Poison:
        """The outcomes, or what one document makes impossible; before the `last` try a duplicate key may pass."""
        try:
            return await self._store_in_turn(brought)
        except DuplicateKey as error:
            if not last:
                raise
            return Unstorable(str(error))
        except Poison as error:
            return Unstorable(str(error))

    async def _store_in_turn(self, mine: _Brought) -> Sequence[Outcome]:
        self._queue.append(mine)
        async with self._turn:
            while mine.waits:
                await self._store_together(self._next_group())
        if mine.error is not None:
            raise mine.error
        return mine.outcomes or ()

    def _next_group(self) -> Sequence[_Brought]:
        """The first of the queue, and those behind it that still fit."""
        group = [self._queue.pop(0)]
        rows = group[0].rows
        while self._queue and not (group[0].alone or self._queue[0].alone):
            if rows + self._queue[0].rows > MOST_CHUNKS:
                break
            rows += self._queue[0].rows
            group.append(self._queue.pop(0))
        return group

    async def _store_together(self, group: Sequence[_Brought]) -> None:
        every = [publication for brought in group for publication in brought.publications]
        try:
            stored = list(await self._store.publish(every, self._leadership))
        except KnowledgeError as error:
            for brought in group:
                brought.error = error
            return
        except BaseException:
            self._queue[:0] = group  # cancelled, or a bug of one: the others store their own
            raise
        for publication, outcome in zip(every, stored, strict=True):
            if outcome != "superseded":
                self._count(publication)
                self._told(publication)
        for brought in group:
            brought.outcomes, stored = stored[: len(brought.publications)], stored[len(brought.publications) :]

    def _count(self, publication: Publication) -> None:
        delta = publication.delta
        self._around.meter.chunks("written", len(delta.write))
        self._around.meter.chunks("rewritten", len(delta.rewrite))
        self._around.meter.chunks("removed", len(delta.remove))
        self._around.meter.chunks("kept", delta.kept)
        for other in publication.beside.values():
            self._count(other)


def _batches(publications: Sequence[Publication]) -> Iterator[tuple[Sequence[Publication], int]]:
    """Whole documents with the number of their rows, as many as fit; a document larger than the limit goes alone."""
    batch: list[Publication] = []
    rows = 0
    for publication in publications:
        size = publication.delta.rows
        if batch and rows + size > MOST_CHUNKS:
            yield batch, rows
            batch, rows = [], 0
        batch.append(publication)
        rows += size
    if batch:
        yield batch, rows
