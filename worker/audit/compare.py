"""Compare: what the pipeline would make of every document now, beside what is stored; nothing is written.

`verify` names what differs, `plan` counts what a backfill would do. Both take the documents through the pipeline's own
steps (shape, diff), so neither can disagree with it.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from worker.errors import UnreadableDocument
from worker.model import Delta, DocKey, DocState
from worker.pipeline.diff import Target, diff
from worker.pipeline.shape import Looked, Shaper
from worker.ports import Documents, KnowledgeStore

IDS: Final = 2_000
"""Ids of one page: few pages, since the embedded server reads the collection for each (0.4 s for 5,000 documents)."""

PAGE: Final = 200
"""What else is asked for by its ids, of one page: vectors, chunk rows."""

BATCH: Final = 64
"""Documents that are in memory together, whole: as many as the pipeline's own batch."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One document: what it says, what is stored of it, and the difference; None when nobody can shape it."""

    looked: Looked
    state: DocState
    delta: Delta | None

    @property
    def key(self) -> DocKey:
        """Which document."""
        return self.looked.key


class Comparer:
    """Goes through documents and what is stored of them, a bounded batch at a time. Raises Retryable."""

    def __init__(self, documents: Documents, store: KnowledgeStore, shaper: Shaper, target: Target) -> None:
        self._documents = documents
        self._store = store
        self._shaper = shaper
        self._target = target

    @property
    def sources(self) -> Sequence[str]:
        """Every source that is watched."""
        return list(self._target.chunker_versions)

    async def present(self, source: str) -> AsyncIterator[Sequence[Compared]]:
        """Every document of a source, in the order of the ids."""
        after: DocKey | None = None
        while page := await self._documents.page(source, after, IDS):
            async for batch in self.of(page):
                yield batch
            after = page[-1]

    async def gone(self, source: str) -> AsyncIterator[Sequence[Compared]]:
        """What is stored of documents of a source that are not there any more."""
        after: str | None = None
        while page := await self._store.page(source, after, IDS):
            async for batch in self.of(await self._documents.absent(source, page)):
                yield batch
            after = str(page[-1])

    async def of(self, keys: Sequence[DocKey]) -> AsyncIterator[Sequence[Compared]]:
        """These documents."""
        for start in range(0, len(keys), BATCH):
            yield await self._compare(keys[start : start + BATCH])

    async def _compare(self, keys: Sequence[DocKey]) -> Sequence[Compared]:
        looked = await self._shaper.look(dict.fromkeys(keys))
        states = await self._store.states(keys)
        return [self._compared(found, states[found.key]) for found in looked]

    def _compared(self, found: Looked, state: DocState) -> Compared:
        if isinstance(found.shaped, UnreadableDocument):
            return Compared(found, state, None)
        return Compared(found, state, diff(found.key, found.version, found.shaped, state, self._target))
