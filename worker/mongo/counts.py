"""How much there is, for people: documents of a source and its chunks."""

from brain.knowledge.pin import Pin
from worker.mongo.driver import Database


async def count_source(database: Database, pin: Pin, source: str) -> dict[str, int]:
    """The number of documents in the source's collection, and of chunks made from it."""
    return {
        "documents": await database.count(source, {}),
        "chunks": await database.count(pin.collection, {"source": source}),
    }
