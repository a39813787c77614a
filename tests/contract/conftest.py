"""The real adapters over both drivers, and a plain client that plays the backend."""

from collections.abc import AsyncGenerator
from typing import Any, Final, cast

import pytest
from bson.codec_options import CodecOptions
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Target
from brain.knowledge.pin import Pin
from worker.clock import SystemClock
from worker.model import Leadership
from worker.mongo.driver import Database, DriverName, connected
from worker.mongo.indexes import ensure_indexes
from worker.mongo.knowledge import MongoKnowledge
from worker.mongo.lease import MongoLease

Backend = AsyncDatabase[dict[str, Any]]

PIN: Final = Pin("test/model", 4)


@pytest.fixture
def pin() -> Pin:
    """A pin of narrow vectors."""
    return PIN


@pytest.fixture(params=["pymongo", "motor"])
def driver(request: pytest.FixtureRequest) -> DriverName:
    """Each driver of the seam."""
    return cast("DriverName", request.param)


@pytest.fixture
async def database(mongo_uri: str, database_name: str, driver: DriverName) -> AsyncGenerator[Database]:
    """A database of this test's own, through the seam, over each driver."""
    async with connected(Target(mongo_uri, database_name), driver) as opened:
        yield opened


@pytest.fixture
async def other(mongo_uri: str, database_name: str, driver: DriverName) -> AsyncGenerator[Database]:
    """The same database through a second client: another process."""
    async with connected(Target(mongo_uri, database_name), driver) as opened:
        yield opened


@pytest.fixture
async def backend(mongo_uri: str, database_name: str) -> AsyncGenerator[Backend]:
    """The same database as the backend writes it."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(mongo_uri, uuidRepresentation="standard")
    async with client:
        yield client[database_name].with_options(CodecOptions(tz_aware=True, uuid_representation=4))


@pytest.fixture
def store(database: Database, pin: Pin) -> MongoKnowledge:
    """The store under test."""
    return MongoKnowledge(database, pin, SystemClock())


@pytest.fixture
async def leader(database: Database, pin: Pin) -> Leadership:
    """Who may write."""
    await ensure_indexes(database, pin)
    leadership = await MongoLease(database, SystemClock()).acquire()
    assert leadership is not None
    return leadership
