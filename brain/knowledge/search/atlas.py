"""Vector search on Atlas (`$vectorSearch`). Source: mongodb/docs, vector-search, and mongot's own checks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pymongo
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row
from brain.knowledge.errors import IndexMissing, Unavailable
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.pin import Pin
from brain.knowledge.search import Engine, Filter, Hit
from brain.knowledge.search.vectors import binary, checked_query

EXACT_BELOW: Final = 10_000  # chunks; up to here an exact scan is fast, and finds everything
CANDIDATES_PER_HIT: Final = 20  # the documentation's recommended minimum
MOST_CANDIDATES: Final = 10_000  # the stage's own limit
_SEARCH_SECONDS: Final = 10.0  # a search on an index that is being built was seen to hang without a limit


def pipeline(pin: Pin, vector: Vector, limit: int, where: Filter, *, exact: bool) -> list[dict[str, Any]]:
    """The aggregation: nearest chunks with their score, without their vector."""
    stage: dict[str, Any] = {"index": pin.index, "path": "embedding", "queryVector": binary(vector), "limit": limit}
    if exact:
        stage["exact"] = True  # must come without numCandidates
    else:
        stage["numCandidates"] = min(MOST_CANDIDATES, limit * CANDIDATES_PER_HIT)
    wanted = {"sport": where.sport, "docType": where.doc_type}
    conditions = {name: {"$eq": value} for name, value in wanted.items() if value is not None}
    if conditions:
        stage["filter"] = conditions
    return [
        {"$vectorSearch": stage},
        {"$addFields": {"_score": {"$meta": "vectorSearchScore"}}},
        {"$project": {"embedding": 0}},
    ]


async def index_state(collection: AsyncCollection[Row], name: str) -> Mapping[str, Any] | None:
    """The `$listSearchIndexes` row of an index, or None where it does not exist. Raises the driver's error."""
    with pymongo.timeout(_SEARCH_SECONDS):
        rows = await (await collection.aggregate([{"$listSearchIndexes": {"name": name}}])).to_list()
    return rows[0] if rows else None


class AtlasSearch:
    """Search through one pinned vector index."""

    def __init__(self, collection: AsyncCollection[Row], pin: Pin) -> None:
        self._collection = collection
        self._pin = pin

    @property
    def name(self) -> Engine:
        """Always atlas."""
        return "atlas"

    async def search(self, vector: Vector, limit: int, where: Filter) -> Sequence[Hit]:
        """The nearest chunks, in the same order as the exact engine: by score, then by id."""
        query = checked_query(vector, self._pin.dimensions)
        try:
            with pymongo.timeout(_SEARCH_SECONDS):
                exact = await self._collection.estimated_document_count() < EXACT_BELOW
                stages = pipeline(self._pin, query, limit, where, exact=exact)
                rows = await (await self._collection.aggregate(stages)).to_list()
        except PyMongoError as exc:
            raise as_knowledge_error(exc, f"searching {self._pin.collection}") from exc
        if not rows:
            await self._explain_nothing()
        hits = [Hit(str(row.pop("_id")), float(row.pop("_score")), row) for row in rows]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    async def _explain_nothing(self) -> None:
        """A missing index and one that is not built yet answer with no rows and no error: tell them from no hits."""
        try:
            state = await index_state(self._collection, self._pin.index)
        except PyMongoError as exc:
            raise as_knowledge_error(exc, f"looking at the index {self._pin.index}") from exc
        if state is None:
            message = (
                f"the vector index {self._pin.index} of {self._pin.collection} does not exist:"
                ' create it in Atlas (README, "The vector index")'
            )
            raise IndexMissing(message)
        if state.get("queryable") is not True:
            message = (
                f"the vector index {self._pin.index} of {self._pin.collection} cannot be searched yet"
                f" (status {state.get('status', 'unknown')}): try again in a minute"
            )
            raise Unavailable(message)
