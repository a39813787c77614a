"""What the adapters say of servers that cannot serve, and of faults on the way; over both drivers."""

import asyncio
import gc
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import aclosing
from typing import Any, cast

import pytest
from bson import Timestamp
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Target
from tests.support.secantus import IN_MEMORY, secantus
from worker.errors import HistoryLost, KnowledgeError, Refused, Retryable, Unreachable, WrongTopology
from worker.model import DocumentChanged, Position, StreamItem
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.driver import Database, DriverName, connected
from worker.mongo.topology import check_server

Backend = AsyncDatabase[dict[str, Any]]


@pytest.fixture(scope="module")
def standalone_uri(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server without a replica set."""
    with secantus(tmp_path_factory.mktemp("standalone"), *IN_MEMORY, "--standalone") as server:
        yield f"mongodb://{server.address}/?retryWrites=false"


@pytest.fixture
async def faults(backend: Backend) -> AsyncGenerator[Backend]:
    """The backend, with every failpoint switched off afterwards."""
    yield backend
    await backend.client.admin.command({"configureFailPoint": "failCommand", "mode": "off"})


async def fail(faults: Backend, command: str, code: int, times: int = 1) -> None:
    """Let the next such commands of the worker end with this code."""
    data = {"failCommands": [command], "errorCode": code, "appName": "trickbook-worker"}
    await faults.client.admin.command({"configureFailPoint": "failCommand", "mode": {"times": times}, "data": data})


async def first(stream: MongoChangeStream, position: Position) -> StreamItem:
    """The first step of the stream."""
    items = cast("AsyncGenerator[StreamItem]", stream.follow(position))
    async with asyncio.timeout(20), aclosing(items) as following:
        return await anext(following)


def changed(seen: list[StreamItem]) -> list[object]:
    """The ids of the changed documents."""
    return [item.event.key.raw for item in seen if isinstance(item.event, DocumentChanged)]


async def until(following: AsyncIterator[StreamItem], enough: Callable[[list[StreamItem]], bool]) -> None:
    """Follow until it is enough."""
    seen: list[StreamItem] = []
    async for item in following:
        seen.append(item)
        if enough(seen):
            return


async def test_a_replica_set_is_accepted(database: Database) -> None:
    """Nothing is raised."""
    await check_server(database)


async def test_a_standalone_server_is_named(standalone_uri: str, driver: DriverName) -> None:
    """WrongTopology, saying what to do (M14)."""
    async with connected(Target(standalone_uri, "test"), driver) as database:
        with pytest.raises(WrongTopology, match="replica set"):
            await check_server(database)


async def test_a_missing_privilege_is_named(database: Database, faults: Backend) -> None:
    """Refused, naming the action and the database."""
    await fail(faults, "aggregate", 13)
    with pytest.raises(Refused, match="changeStream"):
        await check_server(database)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (286, HistoryLost),
        (280, HistoryLost),
        (260, HistoryLost),
        (13, Refused),
        (40573, WrongTopology),
        (91, Retryable),
    ],
)
async def test_opening_the_stream_tells_why_not(
    database: Database, faults: Backend, code: int, error: type[KnowledgeError]
) -> None:
    """Each code has its kind of error; none starts from now."""
    stream = MongoChangeStream(database, ["trickipedia"])
    position = Position(await stream.now())
    await fail(faults, "aggregate", code, times=2)
    with pytest.raises(error):
        await first(stream, position)


@pytest.mark.parametrize("code", [43, 189, 10107, 11600])
async def test_a_cursor_that_dies_is_resumed(database: Database, faults: Backend, code: int) -> None:
    """By the driver, without a gap (M1)."""
    stream = MongoChangeStream(database, ["trickipedia"])
    position = Position(await stream.now())
    await faults["trickipedia"].insert_one({"_id": 1})
    await fail(faults, "getMore", code)
    items = cast("AsyncGenerator[StreamItem]", stream.follow(position))
    async with asyncio.timeout(20), aclosing(items) as following:
        await until(following, lambda seen: changed(seen) == [1])
        await faults["trickipedia"].insert_one({"_id": 2})
        await until(following, lambda seen: changed(seen) == [2])


async def test_a_history_lost_on_the_way_is_told(database: Database, faults: Backend) -> None:
    """286 on a getMore ends the stream with HistoryLost."""
    stream = MongoChangeStream(database, ["trickipedia"])
    position = Position(await stream.now())
    items = cast("AsyncGenerator[StreamItem]", stream.follow(position))
    async with asyncio.timeout(20), aclosing(items) as following:
        await anext(following)
        await fail(faults, "getMore", 286, times=3)
        with pytest.raises(HistoryLost):
            await until(following, lambda _seen: False)


async def test_no_server_is_unreachable(driver: DriverName, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every adapter: the driver's own words stay out."""
    monkeypatch.setattr("brain.knowledge.connect.SELECTION_SECONDS", 0.3)
    monkeypatch.setattr("worker.mongo.motor_client.SELECTION_SECONDS", 0.3, raising=False)
    async with connected(Target("mongodb://127.0.0.1:1/?replicaSet=none", "test"), driver) as database:
        stream = MongoChangeStream(database, ["trickipedia"])
        for asked in (check_server(database), database.find_one("x", {}), first(stream, Position(Timestamp(1, 1)))):
            with pytest.raises(Unreachable):
                await asked
    with warnings.catch_warnings():
        # pymongo 4.20 leaves the socket of a connection attempt that is cancelled by close() to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
