"""The indexes that the worker's own collections need. Never one on a source collection: those belong to the backend."""

from brain.knowledge.pin import Pin
from worker.mongo.driver import Database
from worker.mongo.names import LEDGER, REQUESTS
from worker.mongo.requests import KEPT_SECONDS


async def ensure_indexes(database: Database, pin: Pin) -> None:
    """Create what is missing; cheap when nothing is."""
    await database.ensure_index(pin.collection, [("docKey", 1)])  # states: the diff of a document
    await database.ensure_index(pin.collection, [("textHash", 1)])  # vectors: a text that is already embedded
    await database.ensure_index(LEDGER, [("source", 1), ("_id", 1)])  # page: the sweep
    await database.ensure_index(LEDGER, [("refs", 1)])  # publish: whose text names a renamed document
    await database.ensure_index(LEDGER, [("staleSince", 1)], sparse=True)  # owing
    await database.ensure_index(LEDGER, [("expiresAt", 1)], sparse=True)  # expired
    await database.ensure_index(LEDGER, [("shelf.textHash", 1)], sparse=True)  # vectors: a text of a few versions ago
    await database.ensure_index(REQUESTS, [("leftAt", 1)], expireAfterSeconds=KEPT_SECONDS)
