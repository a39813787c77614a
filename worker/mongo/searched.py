"""Whether searches find a stored chunk: implements `worker.audit.canary.Searched`."""

from typing import Final

from brain.knowledge.pin import Pin
from brain.knowledge.search import Filter
from brain.knowledge.search.atlas import TWINS, pipeline
from brain.knowledge.search.index import VECTOR_FIELD
from brain.knowledge.search.vectors import SAME, stored
from worker.audit.canary import StoredChunk
from worker.mongo.driver import Database
from worker.mongo.vector_index import MongoVectorIndex

_SCORE: Final = {"$project": {"_score": 1}}


class MongoSearched:
    """One generation: by its vector index, or by its collection where the exact engine serves or is demanded."""

    def __init__(self, database: Database, pin: Pin, *, exact: bool) -> None:
        self._database = database
        self._pin = pin
        self._exact: bool | None = True if exact else None

    async def finds(self, chunk: StoredChunk) -> bool | None:
        """As the port says. The index keeps the vector, and a score tells by which one a chunk was found."""
        pin = self._pin
        row = await self._database.find_one(
            pin.collection, {"_id": chunk.id, "sourceVersion": chunk.version}, {VECTOR_FIELD: 1}
        )
        vector = None if row is None else stored(row.get(VECTOR_FIELD), pin.dimensions)
        if vector is None:
            return None
        if self._exact is None:
            self._exact = not (await MongoVectorIndex(self._database).look(pin)).supported
        if self._exact:
            return True
        asked = [*pipeline(pin, vector, TWINS, Filter(), exact=False), _SCORE]
        hits = await self._database.aggregate(pin.collection, asked, read_concern="local")
        return any(hit["_id"] == chunk.id and hit["_score"] >= 1 - SAME for hit in hits)
