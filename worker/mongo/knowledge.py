"""What is stored of each document: implements `worker.ports.KnowledgeStore`. The transaction itself is in `publish`."""

import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np

from brain.knowledge.chunk import Vector
from brain.knowledge.pin import Pin
from worker.clock import Clock
from worker.model import (
    AuditedChunk,
    DocKey,
    DocState,
    Leadership,
    Outcome,
    Publication,
    StoredChunk,
    Stray,
    id_text,
)
from worker.mongo.driver import Database
from worker.mongo.fence import fence
from worker.mongo.names import DEAD_LETTERS, LEDGER
from worker.mongo.publish import PublishTransaction
from worker.mongo.rows import (
    STORED_CHUNK,
    dead_letter,
    ledger_row,
    metadata_of,
    owner_of,
    stored_chunk,
    vector_of,
)
from worker.mongo.shelf import shelved
from worker.mongo.transactions import Session

PAGE: Final = 200
"""Chunk rows of one page, with text and vector: about 2 MB at 1,536 dimensions."""

_ALIVE: Final[Mapping[str, Any]] = {"deleted": False}


class MongoKnowledge:
    """Ledger rows and the chunks of one pin, with those of the generations that live beside it."""

    def __init__(self, database: Database, pin: Pin, clock: Clock, beside: Sequence[Pin] = ()) -> None:
        self._database = database
        self._pin = pin
        self._clock = clock
        self._beside = {other: MongoKnowledge(database, other, clock) for other in beside}

    async def states(self, keys: Sequence[DocKey]) -> Mapping[DocKey, DocState]:
        """The stored state of each key: four finds and one a generation beside, whatever the number of keys."""
        names = [str(key) for key in keys]
        ids = {"_id": {"$in": names}}
        ledger = {row["_id"]: ledger_row(row) for row in await self._database.find(LEDGER, ids, {"shelf": 0})}
        letters = {row["_id"]: dead_letter(row) for row in await self._database.find(DEAD_LETTERS, ids)}
        chunks = await self.chunks(names)
        beside = {pin: await other.chunks(names) for pin, other in self._beside.items()}
        seen: dict[str, set[str | None]] = defaultdict(set)
        for row in await self._database.find(LEDGER, {"refs": {"$in": names}}, {"refs": 1, "seen": 1}):
            for ref, face in zip(row["refs"], row.get("seen") or (), strict=False):
                seen[ref].add(face)
        return {
            key: DocState(
                ledger.get(name),
                chunks.get(name, ()),
                letters.get(name),
                frozenset(seen[name]),
                {pin: there.get(name, ()) for pin, there in beside.items()},
            )
            for key, name in zip(keys, names, strict=True)
        }

    async def chunks(self, names: Sequence[str]) -> Mapping[str, tuple[StoredChunk, ...]]:
        """The chunks of these documents (named by their keys) in this generation alone."""
        chunks: dict[str, list[StoredChunk]] = defaultdict(list)
        for row in await self._database.find(self._pin.collection, {"docKey": {"$in": names}}, STORED_CHUNK):
            if (owner := owner_of(row)) is not None:
                chunks[owner].append(stored_chunk(row))
        return {name: tuple(rows) for name, rows in chunks.items()}

    async def vectors(self, text_hashes: Sequence[str], pin: Pin | None = None) -> Mapping[str, Vector]:
        """Vectors stored for these texts now or a few versions ago, by the pin's model, whole ones only."""
        wanted = pin or self._pin
        generations: dict[Pin, MongoKnowledge] = {self._pin: self, **self._beside}
        found: dict[str, Vector] = {}
        for other, store in generations.items():
            missing = [digest for digest in text_hashes if digest not in found]
            if missing and (other.model, other.dimensions) == (wanted.model, wanted.dimensions):
                found.update(await store.own_vectors(missing))
        return found

    async def own_vectors(self, text_hashes: Sequence[str]) -> Mapping[str, Vector]:
        """Vectors stored for these texts in this generation, or put away by its model."""
        query = {"textHash": {"$in": list(text_hashes)}, "model": self._pin.model, "dimensions": self._pin.dimensions}
        found: dict[str, Vector] = {}
        for row in await self._database.find(self._pin.collection, query, {"textHash": 1, "embedding": 1}):
            vector = vector_of(row.get("embedding"))
            if vector is not None and isinstance(row["textHash"], str) and self._whole(vector):
                found[row["textHash"]] = vector
        missing = [digest for digest in text_hashes if digest not in found]
        if missing:
            away = await shelved(self._database, self._pin, missing)
            found.update((digest, vector) for digest, vector in away.items() if self._whole(vector))
        return found

    async def publish(self, publications: Sequence[Publication], leadership: Leadership) -> Sequence[Outcome]:
        """Store the publications in one transaction; see the port."""
        if not publications:
            return []
        now = self._clock.now()
        transaction = PublishTransaction(self._database, self._pin, publications, leadership, now)
        return await self._database.transaction(transaction.run)

    async def owing(self, sources: Sequence[str], limit: int) -> Sequence[DocKey]:
        """Documents with a debt, oldest first."""
        query = {"staleSince": {"$exists": True}, "source": {"$in": list(sources)}}
        return await self._keys(query, [("staleSince", 1)], limit)

    async def expired(self, now: datetime, sources: Sequence[str], limit: int) -> Sequence[DocKey]:
        """Documents whose time has passed."""
        query = {"expiresAt": {"$lte": now}, "source": {"$in": list(sources)}}
        return await self._keys(query, [("expiresAt", 1)], limit)

    async def page(self, source: str, after: str | None, limit: int) -> Sequence[DocKey]:
        """Documents of a source with a living ledger row; chunks that no row explains are found by `audit` alone."""
        query: dict[str, Any] = {"source": source, "deleted": False}
        if after is not None:
            query["_id"] = {"$gt": after}
        rows = await self._database.find(LEDGER, query, {"source": 1, "key": 1}, sort=[("_id", 1)], limit=limit)
        return [DocKey.of(row["source"], row["key"]) for row in rows]

    async def audit(self, among: Sequence[object] | None = None) -> AsyncIterator[AuditedChunk]:
        """Every chunk row, or those of these ids: its owner looked up in the ledger, its text and vector checked."""
        query: Mapping[str, Any] = {} if among is None else {"_id": {"$in": list(among)}}
        async for rows in self._pages(query):
            names = [owner for row in rows if (owner := owner_of(row)) is not None]
            living = {**_ALIVE, "_id": {"$in": names}}
            found = await self._database.find(LEDGER, living, {"source": 1, "key": 1})
            owners = {row["_id"]: DocKey.of(row["source"], row["key"]) for row in found}
            for row in rows:
                yield self._audited(row, owners.get(owner_of(row) or ""))

    async def strays(self, source: str) -> AsyncIterator[Stray]:
        """The chunk rows of a source that no living ledger row owns."""
        async for rows in self._pages({"source": source}, {"docKey": 1}):
            owned = await self._living([owner_of(row) for row in rows])
            for row in rows:
                if (owner := owner_of(row)) not in owned:
                    yield Stray(row["_id"], owner)

    async def sweep_strays(self, source: str, leadership: Leadership) -> int:
        """Remove the chunk rows of a source that no living ledger row owns; how many there were.

        The rows are read before the ledger, and who owns them is asked again in the transaction that removes them: a
        document that is published meanwhile keeps its chunks.
        """
        strays = [stray async for stray in self.strays(source)]
        swept = 0
        for start in range(0, len(strays), PAGE):
            page = strays[start : start + PAGE]

            async def body(session: Session, page: Sequence[Stray] = page) -> int:
                await fence(self._database, leadership, session)
                owned = await self._living([stray.owner for stray in page], session)
                gone = [stray.id for stray in page if stray.owner not in owned]
                return await self._database.delete(self._pin.collection, {"_id": {"$in": gone}}, session=session)

            swept += await self._database.transaction(body)
        for other in self._beside.values():
            swept += await other.sweep_strays(source, leadership)
        return swept

    async def discard(self, chunk_ids: Sequence[object], leadership: Leadership, pin: Pin | None = None) -> int:
        """Remove chunk rows of a generation."""
        if pin is not None and pin != self._pin:
            other = self._beside.get(pin)  # None: it was dropped meanwhile, with all its rows
            return 0 if other is None else await other.discard(chunk_ids, leadership)

        async def body(session: Session) -> int:
            await fence(self._database, leadership, session)
            return await self._database.delete(self._pin.collection, {"_id": {"$in": list(chunk_ids)}}, session=session)

        return await self._database.transaction(body)

    async def _keys(self, query: Mapping[str, Any], sort: Sequence[tuple[str, int]], limit: int) -> Sequence[DocKey]:
        rows = await self._database.find(LEDGER, query, {"source": 1, "key": 1}, sort=sort, limit=limit)
        return [DocKey.of(row["source"], row["key"]) for row in rows]

    def _whole(self, vector: Vector) -> bool:
        return vector.shape == (self._pin.dimensions,) and bool(np.isfinite(vector).all() and vector.any())

    def _audited(self, row: Mapping[str, Any], owner: DocKey | None) -> AuditedChunk:
        text, vector = row.get("text"), vector_of(row.get("embedding"))
        right = isinstance(text, str) and vector is not None and self._whole(vector)
        if right and owner is not None:
            right = (row.get("source"), row.get("docId")) == (owner.source, id_text(owner.raw))
        digest = hashlib.sha256(str(text).encode("utf-8", "surrogatepass")).hexdigest()
        return AuditedChunk(
            id=row["_id"],
            source=str(row.get("source")),
            owner=owner,
            sound=right and digest == row.get("textHash"),
            text=str(text),
            content_hash=str(row.get("contentHash")),
            metadata=metadata_of(row),
            vector=vector,
        )

    async def _living(self, owners: Sequence[str | None], session: Session | None = None) -> set[str]:
        """Those of the documents that the ledger holds and that are not deleted."""
        query = {**_ALIVE, "_id": {"$in": [owner for owner in owners if owner is not None]}}
        return {row["_id"] for row in await self._database.find(LEDGER, query, {"_id": 1}, session=session)}

    async def _pages(
        self, query: Mapping[str, Any], projection: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Sequence[Mapping[str, Any]]]:
        """Chunk rows, a bounded number in memory."""
        page: list[Mapping[str, Any]] = []
        async for row in self._database.each(self._pin.collection, query, projection):
            page.append(row)
            if len(page) == PAGE:
                yield page
                page = []
        if page:
            yield page
