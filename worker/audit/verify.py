"""Verify: recompute f(documents) from scratch and compare it with what is stored.

It shapes every document with the same code as the pipeline, so it finds what the pipeline would change now: after a
quiet moment that must be nothing (promise: convergence). Beside a running worker a document that differs is a suspect
only: it is looked at again for a while, since its change may be on its way.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from worker.clock import Clock
from worker.errors import Poison
from worker.model import AuditedChunk, Delta, DocKey, DocState
from worker.pipeline.diff import Target, diff
from worker.pipeline.shape import Looked, Shaper
from worker.ports import Documents, KnowledgeStore

Kind = Literal["missing", "stale", "orphaned", "duplicated", "wrongModel"]
KINDS: Final[tuple[Kind, ...]] = ("missing", "stale", "orphaned", "duplicated", "wrongModel")

PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class BadRow:
    """A chunk row that no look at a document mends: nobody's, or damaged (then its owner must be looked at too)."""

    source: str
    kind: Kind
    owner: DocKey | None


@dataclass(frozen=True, slots=True)
class Suspects:
    """What differs: documents by their chunks' kinds of difference, and chunk rows that no look at a document mends."""

    documents: Mapping[DocKey, Counter[Kind]] = field(default_factory=dict[DocKey, Counter[Kind]])
    rows: Mapping[object, BadRow] = field(default_factory=dict[object, BadRow])

    @property
    def to_look_at(self) -> Sequence[DocKey]:
        """The documents whose look mends all, once the rows are gone."""
        owners = (row.owner for row in self.rows.values() if row.owner is not None)
        return list(dict.fromkeys((*self.documents, *owners)))

    def __bool__(self) -> bool:
        return bool(self.documents or self.rows)

    def count(self, source: str | None = None) -> Counter[Kind]:
        """How many chunks differ, by kind, in one source or in all."""
        total: Counter[Kind] = Counter()
        for key, kinds in self.documents.items():
            if source in {None, key.source}:
                total += kinds
        total.update(row.kind for row in self.rows.values() if source in {None, row.source})
        return total


class Auditor:
    """Compares sources and chunks; reads only."""

    def __init__(self, documents: Documents, store: KnowledgeStore, shaper: Shaper, target: Target) -> None:
        self._documents = documents
        self._store = store
        self._shaper = shaper
        self._target = target

    async def audit(self, sources: Sequence[str], progress: Callable[[str, int], None]) -> Suspects:
        """Everything that differs now; `progress` is told (source, documents looked at)."""
        found: dict[DocKey, Counter[Kind]] = {}
        for source in sources:
            seen = 0
            async for keys in self._keys(source):
                found.update(await self._differences(keys))
                seen += len(keys)
                progress(source, seen)
            async for keys in self._orphans(source):
                found.update(await self._differences(keys))
        rows = await self._rows(sources)
        return Suspects(found, rows)

    async def again(self, suspects: Suspects, sources: Sequence[str]) -> Suspects:
        """Those of the suspects that still differ."""
        found: dict[DocKey, Counter[Kind]] = {}
        keys = list(suspects.documents)
        for start in range(0, len(keys), PAGE):
            found.update(await self._differences(keys[start : start + PAGE]))
        rows: Mapping[object, BadRow] = await self._rows(sources) if suspects.rows else {}
        return Suspects(found, {id_: row for id_, row in rows.items() if id_ in suspects.rows})

    async def _rows(self, sources: Sequence[str]) -> Mapping[object, BadRow]:
        found: dict[object, BadRow] = {}
        async for row in self._store.audit():
            kind = _row_kind(row, sources)
            if kind is not None:
                found[row.id] = BadRow(row.source, kind, row.owner)
        return found

    async def _keys(self, source: str) -> AsyncIterator[Sequence[DocKey]]:
        after: DocKey | None = None
        while page := await self._documents.page(source, after, PAGE):
            yield page
            after = page[-1]

    async def _orphans(self, source: str) -> AsyncIterator[Sequence[DocKey]]:
        after: str | None = None
        while page := await self._store.page(source, after, PAGE):
            yield await self._documents.absent(source, page)
            after = str(page[-1])

    async def _differences(self, keys: Iterable[DocKey]) -> Mapping[DocKey, Counter[Kind]]:
        wanted = dict.fromkeys(keys, None)
        if not wanted:
            return {}
        looked = await self._shaper.look(wanted)
        states = await self._store.states(list(wanted))
        kinds = {found.key: self._kinds(found, states[found.key]) for found in looked}
        return {key: counted for key, counted in kinds.items() if counted}

    def _kinds(self, found: Looked, state: DocState) -> Counter[Kind]:
        """Count a document's differing chunks; one in the dead letters is told there, and is no difference."""
        if isinstance(found.shaped, Poison) or state.dead is not None:
            return Counter()
        delta = diff(found.key, found.version, found.shaped, state, self._target)
        kinds = _delta_kinds(delta, state)
        if not kinds and state.ledger is not None and state.ledger.stale_since is not None:
            kinds["stale"] += 1
        return kinds


def _delta_kinds(delta: Delta, state: DocState) -> Counter[Kind]:
    stored = {chunk.id: chunk for chunk in state.chunks}
    kinds: Counter[Kind] = Counter()
    for draft in delta.write:
        old = stored.get(draft.id)
        if old is None:
            kinds["missing"] += 1
        else:
            kinds["wrongModel" if old.text_hash == draft.text_hash else "stale"] += 1
    kinds["stale"] += len(delta.rewrite)
    kept = {chunk.text_hash for id_, chunk in stored.items() if id_ not in delta.remove}
    for id_ in delta.remove:
        kinds["duplicated" if stored[id_].text_hash in kept else "orphaned"] += 1
    return +kinds


def _row_kind(row: AuditedChunk, sources: Sequence[str]) -> Kind | None:
    """Say what is wrong with a row by itself: nobody's, or damaged."""
    if row.owner is None or row.source not in sources:
        return "orphaned" if row.owner is None else None
    return None if row.sound else "stale"


async def settle(
    auditor: Auditor, suspects: Suspects, sources: Sequence[str], clock: Clock, seconds: float
) -> Suspects:
    """Look at suspects again, once a second, until none is left or the time is over; what is left differs."""
    deadline = clock.monotonic() + seconds
    while suspects and clock.monotonic() < deadline:
        await clock.sleep(1.0)
        suspects = await auditor.again(suspects, sources)
    return suspects
