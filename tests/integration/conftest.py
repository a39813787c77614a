"""Tools over the sample data."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from pymongo import MongoClient

from brain.knowledge.connect import Row, Target, open_client
from brain.knowledge.embedding.local import LocalClient
from brain.knowledge.pin import ACTIVE, PINS
from brain.knowledge.search.service import KnowledgeSearch
from tests.support.sample_chunks import PIN, sample_chunks
from tests.support.tool_world import ToolWorld, fill


@pytest.fixture
async def world(mongo_uri: str, database_name: str) -> AsyncIterator[ToolWorld]:
    """The sample data in a fresh database."""
    client = open_client(Target(mongo_uri, database_name, embedded=True))
    await fill(client[database_name])
    yield ToolWorld(client[database_name])
    await client.close()


@pytest.fixture(scope="session")
def embedder() -> Iterator[LocalClient]:
    """The local model, loaded once."""
    client = LocalClient()
    yield client
    asyncio.run(client.close())


@pytest.fixture(scope="session")
def chunks_of_the_sample(mongo_uri: str, embedder: LocalClient) -> Iterator[str]:
    """The name of a database with the sample's chunks and their pin; tests only read it."""
    rows = asyncio.run(sample_chunks(embedder))
    name = f"chunks_{uuid.uuid4().hex[:12]}"
    with MongoClient[Row](mongo_uri) as client:
        client[name][PIN.collection].insert_many(rows)
        client[name][PINS].insert_one({"_id": ACTIVE, **PIN.as_row()})
        yield name
        client.drop_database(name)


@pytest.fixture
async def knowing(
    mongo_uri: str, world: ToolWorld, chunks_of_the_sample: str, embedder: LocalClient
) -> AsyncIterator[ToolWorld]:
    """The sample data in a fresh database, and search in its chunks by the local model."""
    client = open_client(Target(mongo_uri, chunks_of_the_sample, embedded=True))
    search = KnowledgeSearch(client[chunks_of_the_sample], embedder, "exact")
    world.knowledge = search
    yield world
    await search.close()
    await client.close()
