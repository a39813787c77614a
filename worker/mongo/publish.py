"""One publication of a batch of documents: everything of it is stored, or nothing.

    fence ─▶ read the ledger ─▶ leave newer documents alone ─▶ write chunks ─▶ write the ledger, its shelf and debts

The chunks are those of every live generation: one ledger and one fence hold for all, so that a position is durable in
both or in none. The number of round trips does not depend on the number of documents.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from bson import Timestamp
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne

from brain.knowledge.pin import Pin
from worker.model import Delta, Leadership, LedgerRow, Outcome, Publication
from worker.mongo.driver import Database, Write
from worker.mongo.fence import fence
from worker.mongo.names import DEAD_LETTERS, LEDGER
from worker.mongo.rows import chunk_fields, ledger_change, vector_fields, version_of
from worker.mongo.shelf import shelve, standing
from worker.mongo.transactions import Session

_GUARD: Final = {"version": 1, "face": 1, "refs": 1, "seen": 1, "staleSince": 1}


class PublishTransaction:
    """The body of the transaction; it may run several times and must decide anew each time."""

    def __init__(
        self,
        database: Database,
        pin: Pin,
        publications: Sequence[Publication],
        leadership: Leadership,
        now: datetime,
    ) -> None:
        self._database = database
        self._pin = pin
        self._publications = publications
        self._leadership = leadership
        self._now = now

    async def run(self, session: Session) -> Sequence[Outcome]:
        """Store what is not older than what is stored; the outcomes in the order of the publications."""
        await fence(self._database, self._leadership, session)
        stored = await self._rows({str(p.delta.key) for p in self._publications}, session)
        now: Timestamp = session.operation_time
        late = {str(p.delta.key) for p in self._publications if _superseded(p.delta, stored, now)}
        current = [p for p in self._publications if str(p.delta.key) not in late]
        faces = await self._faces(current, session)
        shelved: list[Write] = []
        generations = _by_generation(self._pin, current)
        for pin, publications in generations.items():
            shelved += await self._write_chunks(pin, publications, len(generations), session)
        ledger = [*self._ledger_writes(current, stored, faces, now), *shelved]
        await self._database.bulk(LEDGER, ledger, session=session)
        cleared = [str(p.delta.key) for p in current if p.delta.clears_dead_letter]
        if cleared:
            await self._database.bulk(DEAD_LETTERS, [DeleteMany({"_id": {"$in": cleared}})], session=session)
        return ["superseded" if str(p.delta.key) in late else _outcome(p.delta) for p in self._publications]

    async def _rows(self, names: Iterable[str], session: Session) -> Mapping[str, Mapping[str, Any]]:
        wanted = list(names)
        if not wanted:
            return {}
        rows = await self._database.find(LEDGER, {"_id": {"$in": wanted}}, _GUARD, session=session)
        return {row["_id"]: row for row in rows}

    async def _faces(self, current: Sequence[Publication], session: Session) -> Mapping[str, str | None]:
        """The faces that the ledger has of the documents which these show, this batch's own rows included."""
        ledgers = [p.delta.ledger for p in current if p.delta.ledger is not None]
        shown = {ref for ledger in ledgers for ref in ledger.refs}
        faces = {name: row.get("face") for name, row in (await self._rows(shown, session)).items()}
        return faces | {str(ledger.key): ledger.face for ledger in ledgers}

    async def _write_chunks(
        self, pin: Pin, publications: Sequence[Publication], living: int, session: Session
    ) -> Sequence[Write]:
        """Write the chunks of one generation; what puts away the vectors that they replace is written later."""
        deltas = [p.delta for p in publications]
        rows = await standing(self._database, pin, deltas, session)
        writes = self._chunk_writes(pin, publications, {row["_id"] for row in rows})
        await self._database.bulk(pin.collection, writes, ordered=False, session=session)
        return shelve(pin, deltas, rows, living)

    def _chunk_writes(self, pin: Pin, current: Sequence[Publication], there: AbstractSet[str]) -> list[Write]:
        """What this transaction has not seen `there` is inserted, half the work of an upsert on the embedded server."""
        writes: list[Write] = []
        for publication in current:
            delta = publication.delta
            for draft in delta.write:
                row = chunk_fields(draft, delta.key, delta.version, self._now)
                row |= vector_fields(publication.vectors[draft.text_hash], pin)
                new = draft.id not in there
                writes.append(InsertOne({"_id": draft.id, **row}) if new else ReplaceOne({"_id": draft.id}, row))
            for draft in delta.rewrite:
                row = chunk_fields(draft, delta.key, delta.version, self._now)
                writes.append(UpdateOne({"_id": draft.id}, {"$set": row}))
            writes += [DeleteOne({"_id": id_}) for id_ in delta.remove]
        return writes

    def _ledger_writes(
        self,
        current: Sequence[Publication],
        stored: Mapping[str, Mapping[str, Any]],
        faces: Mapping[str, str | None],
        now: Timestamp,
    ) -> list[Write]:
        """Inserts first: the writes are ordered, and each change of their kind is a round trip."""
        new: list[Write] = []
        rows: list[Write] = []
        for delta in (p.delta for p in current):
            name = str(delta.key)
            if delta.ledger is not None:
                ledger = _owing(delta.ledger, stored.get(name, {}), faces, now)
                fields = ledger_change(ledger, self._leadership.epoch, self._now)
                if name in stored:
                    rows.append(UpdateOne({"_id": name}, fields))
                else:
                    new.append(InsertOne({"_id": name, **fields["$set"]}))
        return new + rows + _debts([p.delta for p in current], stored)


def _by_generation(active: Pin, current: Sequence[Publication]) -> Mapping[Pin, Sequence[Publication]]:
    """The publications of each generation, the active one's first."""
    found: dict[Pin, list[Publication]] = {active: list(current)}
    for publication in current:
        for pin, other in publication.beside.items():
            found.setdefault(pin, []).append(other)
    return found


def _debts(deltas: Sequence[Delta], stored: Mapping[str, Mapping[str, Any]]) -> list[Write]:
    """One statement for all that were read together, since most are named by nobody; a row never owes itself."""
    renamed: dict[Timestamp, list[str]] = defaultdict(list)
    debts: list[Write] = []
    for delta in deltas:
        name = str(delta.key)
        if not delta.refresh_neighbours:
            continue
        if name in (delta.ledger.refs if delta.ledger is not None else stored.get(name, {}).get("refs") or ()):
            debts.append(_debt({"refs": name, "_id": {"$ne": name}}, delta.version))
        else:
            renamed[delta.version].append(name)
    return debts + [_debt({"refs": {"$in": names}}, version) for version, names in renamed.items()]


def _debt(rows: Mapping[str, Any], version: Timestamp) -> Write:
    return UpdateMany(rows, {"$max": {"staleSince": version}})


def _superseded(delta: Delta, stored: Mapping[str, Mapping[str, Any]], now: Timestamp) -> bool:
    """Whether a newer version is stored. One that the database's own time has not come to is none: nobody has read it.

    It would freeze its document for ever. Each true one was the time of a read, before it was stored.
    """
    row = stored.get(str(delta.key))
    return row is not None and delta.version < version_of(row.get("version")) <= now


def _outcome(delta: Delta) -> Outcome:
    return "deleted" if delta.ledger is not None and delta.ledger.deleted else "applied"


def _owing(ledger: LedgerRow, row: Mapping[str, Any], faces: Mapping[str, str | None], now: Timestamp) -> LedgerRow:
    """The new row with its debt: one that is newer than its read, or its own where it shows a face that is not so.

    A wrong face that the former row showed already owes nothing again: the other document's own look will tell. The
    same version again is the same publication, whose first answer was lost: it decides nothing anew.
    """
    since: Timestamp | None = row.get("staleSince")
    if row.get("version") != ledger.version and (since is None or not ledger.version < since <= now):
        shown = set(zip(row.get("refs") or (), row.get("seen") or (), strict=False))
        strange = {(ref, face) for ref, face in zip(ledger.refs, ledger.seen, strict=True) if faces.get(ref) != face}
        since = ledger.version if strange - shown else None
    return replace(ledger, stale_since=since)
