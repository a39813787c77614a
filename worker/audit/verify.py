"""Verify: recompute f(documents) from scratch and compare it with what is stored.

After a quiet moment nothing may differ (promise: convergence). Beside a running worker whatever differs is a suspect
only: it is looked at again for a while, since its change may be on its way.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from brain.knowledge.chunk import content_hash
from worker.audit.compare import PAGE, Compared, Comparer
from worker.audit.sample import VectorSample
from worker.clock import Clock
from worker.model import AuditedChunk, Delta, DocKey, DocState, typed_id
from worker.pipeline.diff import Target
from worker.ports import KnowledgeStore

Kind = Literal["missing", "stale", "orphaned", "duplicated", "wrongModel"]
KINDS: Final[tuple[Kind, ...]] = ("missing", "stale", "orphaned", "duplicated", "wrongModel")


@dataclass(frozen=True, slots=True)
class BadRow:
    """A chunk row that no look at a document mends: nobody's, or damaged (then its owner must be looked at too).

    `id` is whatever the row holds: a row that was written by hand may hold anything.
    """

    id: object
    source: str
    kind: Kind
    owner: DocKey | None


@dataclass(frozen=True, slots=True)
class Suspects:
    """What differs: documents by their chunks' kinds of difference, and bad rows by their type-tagged id."""

    documents: Mapping[DocKey, Counter[Kind]] = field(default_factory=dict[DocKey, Counter[Kind]])
    rows: Mapping[str, BadRow] = field(default_factory=dict[str, BadRow])

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

    def with_foreign(self, rows: Iterable[AuditedChunk]) -> "Suspects":
        """These, and rows whose vector is another model's."""
        foreign = {typed_id(row.id): BadRow(row.id, row.source, "wrongModel", row.owner) for row in rows}
        return Suspects(self.documents, {**self.rows, **foreign})


class Auditor:
    """Compares sources and chunks; reads only."""

    def __init__(self, comparer: Comparer, store: KnowledgeStore, target: Target) -> None:
        self._comparer = comparer
        self._store = store
        self._target = target

    async def audit(
        self, sources: Sequence[str], progress: Callable[[str, int], None], sample: VectorSample | None = None
    ) -> Suspects:
        """Everything that differs now; `progress` is told (source, documents looked at).

        Chunk rows of nobody count where their source is asked for, or where every source is. `sample` is offered the
        rows that are right as far as can be told without embedding.
        """
        found = _Found()
        for source in sources:
            seen = 0
            async for batch in self._comparer.present(source):
                found.take(batch)
                seen += len(batch)
                progress(source, seen)
            async for batch in self._comparer.gone(source):
                found.take(batch)
        return Suspects(found.differing, await self._rows(sources, found, None, sample))

    async def again(self, suspects: Suspects, sources: Sequence[str]) -> Suspects:
        """Those of the suspects that still differ; nothing else is read."""
        found = _Found()
        async for batch in self._comparer.of(suspects.to_look_at):
            found.take(batch)
        kept = {key: kinds for key, kinds in found.differing.items() if key in suspects.documents}
        rows: dict[str, BadRow] = {}
        ids = [row.id for row in suspects.rows.values()]
        for start in range(0, len(ids), PAGE):
            rows.update(await self._rows(sources, found, ids[start : start + PAGE]))
        return Suspects(kept, rows)

    async def _rows(
        self,
        sources: Collection[str],
        found: "_Found",
        among: Sequence[object] | None,
        sample: VectorSample | None = None,
    ) -> Mapping[str, BadRow]:
        bad: dict[str, BadRow] = {}
        async for row in self._store.audit(among):
            kind = self._row_kind(row, sources, found)
            if kind is not None:
                source = row.source if row.owner is None else row.owner.source
                bad[typed_id(row.id)] = BadRow(row.id, source, kind, row.owner)
            elif sample is not None and self._alone(row, sources, found):
                sample.offer(row)
        return bad

    def _row_kind(self, row: AuditedChunk, sources: Collection[str], found: "_Found") -> Kind | None:
        """Say what is wrong with a row by itself: nobody's, or damaged."""
        if row.owner is None:
            everything = set(self._comparer.sources) <= set(sources)
            return "orphaned" if everything or row.source in sources else None
        if row.owner.source not in sources:
            return None
        if not row.sound:
            return "stale"
        # A row of a document that differs, or that is dead-lettered, may rightly be of an older version.
        told = row.owner in found.differing or row.owner in found.dead
        return None if told or self._faithful(row, row.owner) else "stale"

    @staticmethod
    def _alone(row: AuditedChunk, sources: Collection[str], found: "_Found") -> bool:
        """Whether nothing is known against a row of these sources."""
        return row.owner is not None and row.owner.source in sources and row.owner not in found.differing

    def _faithful(self, row: AuditedChunk, owner: DocKey) -> bool:
        """Whether the row holds what its own hash is of."""
        if row.metadata is None:
            return True
        version = self._target.chunker_versions[owner.source]
        try:
            return content_hash(row.text, row.metadata, version) == row.content_hash
        except TypeError:  # a field of a type that no chunk has
            return False


class _Found:
    """What was found of documents so far: those that differ, and those that cannot be processed as they are."""

    def __init__(self) -> None:
        self.differing: dict[DocKey, Counter[Kind]] = {}
        self.dead: set[DocKey] = set()

    def take(self, batch: Sequence[Compared]) -> None:
        """One in the dead letters is told there, and is no difference."""
        for one in batch:
            if one.delta is None or one.state.dead is not None:
                self.dead.add(one.key)
            elif kinds := _kinds(one.delta, one.state):
                self.differing[one.key] = kinds


def _kinds(delta: Delta, state: DocState) -> Counter[Kind]:
    """Count a document's differing chunks; a debt that is not paid is one, and a version that nobody has read yet."""
    kinds = _delta_kinds(delta, state)
    ledger = state.ledger
    if not kinds and ledger is not None and (ledger.stale_since is not None or ledger.version > delta.version):
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


async def settle(
    auditor: Auditor, suspects: Suspects, sources: Sequence[str], clock: Clock, seconds: float
) -> Suspects:
    """Look at suspects again, once a second, until none is left or the time is over; what is left differs."""
    deadline = clock.monotonic() + seconds
    while suspects and clock.monotonic() < deadline:
        await clock.sleep(1.0)
        suspects = await auditor.again(suspects, sources)
    return suspects
