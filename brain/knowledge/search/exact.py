"""Exact search in this process: every chunk's vector is compared. For servers without vector search.

The vectors are in memory (`table`, `follow`); the texts of the hits are fetched by id, so they are as fresh as the
database even when the vectors are a moment old.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import pymongo
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.pin import Pin
from brain.knowledge.search import Engine, Filter, Hit, checked_limit
from brain.knowledge.search.follow import Followed, LoadedOnce, Tables
from brain.knowledge.search.index import VECTOR_FIELD
from brain.knowledge.search.vectors import checked_query

_FETCH_SECONDS: Final = 10.0


class ExactSearch:
    """Exact search over one pinned chunk collection; with `follow` it sees what is published after its first search."""

    def __init__(self, collection: AsyncCollection[Row], pin: Pin, *, follow: bool = False) -> None:
        self._collection = collection
        self._pin = pin
        self._tables: Tables = Followed(collection, pin) if follow else LoadedOnce(collection, pin)

    @property
    def name(self) -> Engine:
        """Always exact."""
        return "exact"

    async def search(self, vector: Vector, limit: int, where: Filter) -> Sequence[Hit]:
        """The nearest chunks. A chunk that was deleted or moved out of the filter meanwhile is not returned."""
        query = checked_query(vector, self._pin.dimensions)
        most = checked_limit(limit)
        table = await self._tables.current()
        nearest = await asyncio.to_thread(table.nearest, query, most, where)
        stored = await self._fetched([chunk_id for chunk_id, _ in nearest])
        hits = [Hit(chunk_id, score, stored[chunk_id]) for chunk_id, score in nearest if chunk_id in stored]
        return [hit for hit in hits if _matches(hit.fields, where)]

    async def holds(self, chunk_id: str, vector: Vector, where: Filter) -> bool:
        """Whether this chunk is in memory with this vector."""
        query = checked_query(vector, self._pin.dimensions)
        table = await self._tables.current()
        return await asyncio.to_thread(table.holds, chunk_id, query, where)

    async def close(self) -> None:
        """Stop following."""
        await self._tables.close()

    async def _fetched(self, ids: Sequence[str]) -> Mapping[str, Mapping[str, object]]:
        if not ids:
            return {}
        try:
            with pymongo.timeout(_FETCH_SECONDS):
                rows = await self._collection.find({"_id": {"$in": list(ids)}}, {VECTOR_FIELD: 0}).to_list()
        except PyMongoError as exc:
            raise as_knowledge_error(exc, f"fetching chunks of {self._pin.collection}") from exc
        return {str(row.pop("_id")): row for row in rows}


def _matches(fields: Mapping[str, object], where: Filter) -> bool:
    return where.sport in {None, fields.get("sport")} and where.doc_type in {None, fields.get("docType")}
