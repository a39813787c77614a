"""What the canary asks: what the index knows, or where there is none what is stored. Over both drivers."""

from collections.abc import AsyncGenerator, Generator

import pytest
from bson import Timestamp

from brain.knowledge.connect import Target
from brain.knowledge.search.index import definition
from tests.contract.conftest import Backend
from tests.support.fake_mongod import FakeMongod
from tests.support.fake_mongod.server import DATABASE
from tests.support.search_stage import PIN, chunk, vector
from worker.audit.canary import StoredChunk
from worker.mongo.driver import Database, DriverName, connected
from worker.mongo.searched import MongoSearched

SAVED = Timestamp(1000, 5)
OLLIE = StoredChunk("tricks/s:ollie/full", SAVED)


@pytest.fixture
def server() -> Generator[FakeMongod]:
    """A server whose index knows the former vector of a chunk."""
    with FakeMongod() as started:
        started.search.enabled = True
        index = started.search.put(PIN.collection, PIN.index, definition(PIN))
        index.lagging = [chunk(OLLIE.id, vector(1), "bmx")]
        started.write(PIN.collection, chunk(OLLIE.id, vector(0, 1), "bmx", sourceVersion=SAVED))
        yield started


@pytest.fixture
async def atlas(server: FakeMongod, driver: DriverName) -> AsyncGenerator[Database]:
    """Its database."""
    async with connected(Target(server.uri, DATABASE), driver) as opened:
        yield opened


async def test_the_index_is_asked(server: FakeMongod, atlas: Database) -> None:
    """Not the collection, which knows it already; unless the brain searches exactly."""
    searched = MongoSearched(atlas, PIN, exact=False)
    index = server.search.indexes[PIN.collection, PIN.index]
    assert await searched.finds(OLLIE) is False
    index.lagging = []
    assert await searched.finds(OLLIE) is False
    assert await MongoSearched(atlas, PIN, exact=True).finds(OLLIE) is True
    index.lagging = None
    assert await searched.finds(OLLIE) is True


async def test_among_equal_texts_each_is_found(server: FakeMongod, atlas: Database) -> None:
    """They have one vector; a chunk with another one is not taken for it."""
    index = server.search.indexes[PIN.collection, PIN.index]
    twins = [chunk(f"tricks/s:twin/{number}", vector(0, 1)) for number in range(10)]
    index.lagging = twins
    searched = MongoSearched(atlas, PIN, exact=False)
    assert await searched.finds(OLLIE) is False
    index.lagging = [*twins, *server.store.find(PIN.collection, {})]
    assert await searched.finds(OLLIE) is True


async def test_a_chunk_that_is_not_so_any_more(server: FakeMongod, atlas: Database) -> None:
    """Written anew, or gone: whether that vector was ever found, nobody can know."""
    searched = MongoSearched(atlas, PIN, exact=False)
    assert await searched.finds(StoredChunk(OLLIE.id, Timestamp(1000, 4))) is None
    server.delete(PIN.collection, OLLIE.id)
    assert await searched.finds(OLLIE) is None


async def test_a_server_without_an_index(database: Database, backend: Backend) -> None:
    """The exact engine serves there, from the collection."""
    searched = MongoSearched(database, PIN, exact=False)
    assert await searched.finds(OLLIE) is None
    await backend[PIN.collection].insert_one(chunk(OLLIE.id, vector(0, 1), sourceVersion=SAVED))
    assert await searched.finds(OLLIE) is True
    assert await searched.finds(OLLIE) is True
