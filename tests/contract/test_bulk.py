"""M12: batches beyond what one message may hold, through the seam over both drivers: every operation is done."""

from typing import Any, Final

import pytest
from pymongo import InsertOne
from pymongo.asynchronous.database import AsyncDatabase

from worker.mongo.driver import Database

pytestmark = pytest.mark.slow

Backend = AsyncDatabase[dict[str, Any]]

OPERATIONS: Final = 100_001
"""One more than a message may hold on MongoDB (`maxWriteBatchSize`)."""

MEGABYTE: Final = 1_000_000
MEGABYTES: Final = 50
"""More than one message may hold (`maxMessageSizeBytes` is 48 MB)."""


async def test_a_hundred_thousand_operations(database: Database, backend: Backend) -> None:
    """More operations than one message takes are sent in several."""
    await database.bulk("many", [InsertOne({"_id": number}) for number in range(OPERATIONS)], ordered=False)
    assert await backend.many.count_documents({}) == OPERATIONS


async def test_fifty_megabytes(database: Database, backend: Backend) -> None:
    """So are more bytes, and each document arrives whole."""
    writes = [InsertOne({"_id": number, "text": "x" * MEGABYTE}) for number in range(MEGABYTES)]
    await database.bulk("large", writes, ordered=False)
    sizes = backend.large.aggregate([{"$project": {"size": {"$strLenCP": "$text"}}}])
    assert [row["size"] async for row in await sizes] == [MEGABYTE] * MEGABYTES
