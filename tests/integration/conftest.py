"""Tools over the sample data."""

from collections.abc import AsyncIterator

import pytest

from brain.knowledge.connect import Target, open_client
from tests.support.tool_world import ToolWorld, fill


@pytest.fixture
async def world(mongo_uri: str, database_name: str) -> AsyncIterator[ToolWorld]:
    """The sample data in a fresh database."""
    client = open_client(Target(mongo_uri, database_name, embedded=True))
    await fill(client[database_name])
    yield ToolWorld(client[database_name])
    await client.close()
