"""A scripted MongoDB server on the wire, and the worker's seam to it over both drivers."""

from collections.abc import AsyncGenerator, Generator
from typing import cast

import pytest

from brain.knowledge.connect import Target
from tests.support.fake_mongod import FakeMongod
from tests.support.fake_mongod.server import DATABASE
from worker.mongo.driver import Database, DriverName, connected


@pytest.fixture(params=["pymongo", "motor"])
def driver(request: pytest.FixtureRequest) -> DriverName:
    """Each driver of the seam."""
    return cast("DriverName", request.param)


@pytest.fixture
def server() -> Generator[FakeMongod]:
    """The fake."""
    with FakeMongod() as started:
        yield started


@pytest.fixture
async def database(server: FakeMongod, driver: DriverName) -> AsyncGenerator[Database]:
    """The fake's database through the seam; what a test has scripted is over when it ends."""
    async with connected(Target(server.uri, DATABASE), driver) as opened:
        yield opened
        server.script.calm()
