"""Vector search on Atlas (`$vectorSearch`). Source: mongodb/docs, vector-search, and mongot's own checks."""

from collections.abc import Sequence
from typing import Any, Final

import pymongo
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row
from brain.knowledge.errors import IndexMissing, IndexNotReady, IndexUnusable, KnowledgeError, Refused, Retryable
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.pin import Pin
from brain.knowledge.search import Engine, Filter, Hit, checked_limit
from brain.knowledge.search.index import BROKEN, VECTOR_FIELD, Listed, differences
from brain.knowledge.search.vectors import SAME, binary, checked_query

EXACT_BELOW: Final = 10_000  # chunks; up to here an exact scan is fast, and finds everything
CANDIDATES_PER_HIT: Final = 20  # the documentation's recommended minimum
MOST_CANDIDATES: Final = 10_000  # the stage's own limit
_SEARCH_SECONDS: Final = 10.0  # a search on an index that is being built was seen to hang without a limit
TWINS: Final = 50
"""Hits among which a chunk must be when it is searched by its own vector: those of equal texts come beside it."""


def pipeline(pin: Pin, vector: Vector, limit: int, where: Filter, *, exact: bool) -> list[dict[str, Any]]:
    """The aggregation: nearest chunks with their score, without their vector."""
    stage: dict[str, Any] = {"index": pin.index, "path": VECTOR_FIELD, "queryVector": binary(vector), "limit": limit}
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
        {"$project": {VECTOR_FIELD: 0}},
    ]


def searching(collection: AsyncCollection[Row]) -> AsyncCollection[Row]:
    """The collection with the one read concern that search stages take.

    Source: mongodb/mongo, LiteParsedSearchStage: "cannot run with a readConcern other than 'local'".
    """
    return collection.with_options(read_concern=ReadConcern("local"))


async def index_state(collection: AsyncCollection[Row], name: str) -> Listed | None:
    """What the server says of an index, None where it does not exist.

    Raises what `as_knowledge_error` makes of the driver's errors; Unsupported by a server without vector search.
    """
    try:
        with pymongo.timeout(_SEARCH_SECONDS):
            asked = [{"$listSearchIndexes": {"name": name}}]
            return Listed.of(await (await searching(collection).aggregate(asked)).to_list())
    except PyMongoError as exc:
        raise as_knowledge_error(exc, f"looking at the index {name} of {collection.name}") from exc


class AtlasSearch:
    """Search through one pinned vector index."""

    def __init__(self, collection: AsyncCollection[Row], pin: Pin) -> None:
        self._collection = searching(collection)
        self._pin = pin

    @property
    def name(self) -> Engine:
        """Always atlas."""
        return "atlas"

    async def search(self, vector: Vector, limit: int, where: Filter) -> Sequence[Hit]:
        """The nearest chunks, in the same order as the exact engine: by score, then by id.

        Which of several chunks with the score of the last place are found is the server's choice.
        """
        query = checked_query(vector, self._pin.dimensions)
        rows = await self._rows(query, checked_limit(limit), where)
        # Vectors of another model are no answer, also where their width is the same; the index cannot know.
        ours = [row for row in rows if row.get("model") == self._pin.model]
        hits = [Hit(str(row.pop("_id")), float(row.pop("_score")), row) for row in ours]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    async def holds(self, chunk_id: str, vector: Vector, where: Filter) -> bool:
        """Whether a search by this vector finds this chunk with it: the index lags the collection."""
        hits = await self.search(vector, TWINS, where)
        return any(hit.id == chunk_id and hit.score >= 1 - SAME for hit in hits)

    async def close(self) -> None:
        """Nothing is held."""

    async def _rows(self, query: Vector, limit: int, where: Filter) -> list[Row]:
        try:
            with pymongo.timeout(_SEARCH_SECONDS):
                exact = await self._collection.estimated_document_count() < EXACT_BELOW
                stages = pipeline(self._pin, query, limit, where, exact=exact)
                rows = await (await self._collection.aggregate(stages)).to_list()
        except PyMongoError as exc:
            error = as_knowledge_error(exc, f"searching {self._pin.collection}")
            if not isinstance(error, Retryable | Refused):
                await self._explain(error)  # one that is being built or defined otherwise answers with code 8
            raise error from exc
        if not rows:
            await self._explain()
        return rows

    async def _explain(self, cause: KnowledgeError | None = None) -> None:
        """Raise what is wrong with the index, if anything is: a missing one answers as one in which nothing is near."""
        found = await index_state(self._collection, self._pin.index)
        which = f"the vector index {self._pin.index} of {self._pin.collection}"
        if found is None:
            message = f"{which} does not exist: create it with `python -m worker index ensure`"
            raise IndexMissing(message) from cause
        if not found.queryable and found.status in BROKEN:
            message = f"{which} cannot be searched (status {found.status}): see `python -m worker index status`"
            raise IndexUnusable(message) from cause
        if not found.queryable:
            message = f"{which} cannot be searched yet (status {found.status}): try again in a minute"
            raise IndexNotReady(message) from cause
        if wrong := differences(found.definition, self._pin):
            message = f"{which} is defined otherwise ({'; '.join(wrong)}): `python -m worker index ensure --update`"
            raise IndexUnusable(message) from cause
