"""One publication of a batch of documents: everything of it is stored, or nothing.

    fence ─▶ read the ledger ─▶ leave newer documents alone ─▶ write chunks ─▶ write the ledger ─▶ mark debts

The number of round trips does not depend on the number of documents.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from bson import Timestamp
from pymongo import DeleteMany, DeleteOne, ReplaceOne, UpdateMany, UpdateOne

from brain.knowledge.pin import Pin
from worker.model import Delta, Leadership, LedgerRow, Outcome, Publication
from worker.mongo.driver import Database, Session, Write
from worker.mongo.fence import fence
from worker.mongo.names import DEAD_LETTERS, LEDGER
from worker.mongo.rows import chunk_fields, ledger_fields, vector_fields

_GUARD: Final = {"version": 1, "faceSince": 1, "staleSince": 1}


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
        current = [p for p in self._publications if not _superseded(p.delta, stored)]
        faces = await self._faces(current, session)
        await self._database.bulk(self._pin.collection, self._chunk_writes(current), ordered=False, session=session)
        await self._database.bulk(LEDGER, self._ledger_writes(current, stored, faces), session=session)
        cleared = [str(p.delta.key) for p in current if p.delta.clears_dead_letter]
        if cleared:
            await self._database.bulk(DEAD_LETTERS, [DeleteMany({"_id": {"$in": cleared}})], session=session)
        return [_outcome(p.delta, stored) for p in self._publications]

    async def _rows(self, names: Iterable[str], session: Session) -> Mapping[str, Mapping[str, Any]]:
        wanted = list(names)
        if not wanted:
            return {}
        rows = await self._database.find(LEDGER, {"_id": {"$in": wanted}}, _GUARD, session=session)
        return {row["_id"]: row for row in rows}

    async def _faces(self, current: Sequence[Publication], session: Session) -> Mapping[str, Timestamp]:
        """When the faces that these documents show last changed, this batch's own changes included."""
        shown = {ref for p in current if p.delta.ledger is not None for ref in p.delta.ledger.refs}
        faces = {
            name: row["faceSince"] for name, row in (await self._rows(shown, session)).items() if row.get("faceSince")
        }
        faces.update({str(p.delta.key): p.delta.version for p in current if p.delta.refresh_neighbours})
        return faces

    def _chunk_writes(self, current: Sequence[Publication]) -> list[Write]:
        writes: list[Write] = []
        for publication in current:
            delta = publication.delta
            for draft in delta.write:
                row = chunk_fields(draft, delta.key, delta.version, self._now)
                row |= vector_fields(publication.vectors[draft.text_hash], self._pin)
                writes.append(ReplaceOne({"_id": draft.id}, row, upsert=True))
            for draft in delta.rewrite:
                row = chunk_fields(draft, delta.key, delta.version, self._now)
                writes.append(UpdateOne({"_id": draft.id}, {"$set": row}))
            writes += [DeleteOne({"_id": id_}) for id_ in delta.remove]
        return writes

    def _ledger_writes(
        self,
        current: Sequence[Publication],
        stored: Mapping[str, Mapping[str, Any]],
        faces: Mapping[str, Timestamp],
    ) -> list[Write]:
        rows: list[Write] = []
        debts: list[Write] = []
        for delta in (p.delta for p in current if p.delta.ledger is not None):
            name = str(delta.key)
            ledger = _complete(delta, stored.get(name, {}), faces)
            rows.append(
                ReplaceOne({"_id": name}, ledger_fields(ledger, self._leadership.epoch, self._now), upsert=True)
            )
            if delta.refresh_neighbours:
                older = {"refs": name, "_id": {"$ne": name}, "version": {"$lt": delta.version}}
                debts.append(UpdateMany(older, {"$max": {"staleSince": delta.version}}))
        return rows + debts


def _superseded(delta: Delta, stored: Mapping[str, Mapping[str, Any]]) -> bool:
    row = stored.get(str(delta.key))
    return row is not None and row["version"] > delta.version


def _outcome(delta: Delta, stored: Mapping[str, Mapping[str, Any]]) -> Outcome:
    if _superseded(delta, stored):
        return "superseded"
    return "deleted" if delta.ledger is not None and delta.ledger.deleted else "applied"


def _complete(delta: Delta, row: Mapping[str, Any], faces: Mapping[str, Timestamp]) -> LedgerRow:
    """The row with what only the store knows: since when the face stands, and what is owed after this read."""
    ledger = delta.ledger
    if ledger is None:
        raise ValueError(delta.key)
    owed = [row.get("staleSince"), *(faces.get(ref) for ref in ledger.refs)]
    later = [since for since in owed if since is not None and since > delta.version]
    return replace(
        ledger,
        face_since=delta.version if delta.refresh_neighbours else row.get("faceSince"),
        stale_since=max(later, default=None),
    )
