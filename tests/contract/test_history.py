"""A server of its own with a short history: what is older is lost loudly, what is there is not."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from bson import Timestamp
from pymongo import AsyncMongoClient

from brain.knowledge.connect import Target
from tests.support.secantus import SHORT, secantus
from worker.errors import HistoryLost
from worker.model import DocumentChanged, Position, StreamItem
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.driver import DriverName, connected


@pytest.fixture
def short_uri(tmp_path: Path) -> Generator[str]:
    """A fresh server that keeps 50 entries of history, without a heartbeat."""
    with secantus(tmp_path, *SHORT) as server:
        yield server.uri


async def first_change(stream: MongoChangeStream, position: Position) -> StreamItem:
    """The first change after the position."""
    items = cast("AsyncGenerator[StreamItem]", stream.follow(position))
    async with asyncio.timeout(20), aclosing(items) as following:
        async for item in following:
            if isinstance(item.event, DocumentChanged):
                return item
    raise AssertionError


async def test_a_fresh_server_has_lost_nothing(short_uri: str, driver: DriverName) -> None:
    """The very first position, taken before anything was written, is followed from though the history is younger."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(short_uri)
    async with client, connected(Target(short_uri, "test"), driver) as database:
        stream = MongoChangeStream(database, ["docs"])
        start = Position(await stream.now())
        await client["test"]["docs"].insert_one({"_id": 1})
        item = await first_change(stream, start)
        assert isinstance(item.event, DocumentChanged)


async def test_a_pruned_history_is_lost_and_the_rest_is_not(short_uri: str, driver: DriverName) -> None:
    """A token, and a time, from before the oldest entry raise HistoryLost; later ones are followed."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(short_uri)
    async with client, connected(Target(short_uri, "test"), driver) as database:
        stream = MongoChangeStream(database, ["docs"])
        start = Position(await stream.now())
        await client["test"]["docs"].insert_one({"_id": 0})
        early = (await first_change(stream, start)).position
        await client["test"]["docs"].insert_many([{"_id": n} for n in range(1, 200)])
        late = Position(await stream.now())
        await client["test"]["docs"].insert_one({"_id": 200})
        await client.admin.command({"secantusAdmin.pruneOplog": 1})
        oldest = await stream.oldest()
        assert oldest is not None
        assert early.at < oldest <= late.at
        for lost in (early, Position(early.at), Position(Timestamp(early.at.time, 0))):
            with pytest.raises(HistoryLost):
                await first_change(stream, lost)
        event = (await first_change(stream, late)).event
        assert isinstance(event, DocumentChanged)
        assert event.key.raw in {199, 200}  # a time is followed from inclusively


async def test_a_follower_that_the_history_outran_is_told(short_uri: str, driver: DriverName) -> None:
    """The embedded server goes on silently with what it still has; nothing else asks about the history meanwhile."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(short_uri)
    async with client, connected(Target(short_uri, "test"), driver) as database:
        stream = MongoChangeStream(database, ["docs"])
        start = Position(await stream.now())
        items = cast("AsyncGenerator[StreamItem]", stream.follow(start))
        async with asyncio.timeout(20), aclosing(items) as following:
            await client["test"]["docs"].insert_one({"_id": 0})
            first = await anext(following)
            await client["test"]["docs"].insert_many([{"_id": n} for n in range(1, 2000)])
            await client.admin.command({"secantusAdmin.pruneOplog": 1})
            with pytest.raises(HistoryLost) as lost:
                async for _ in following:
                    pass
            assert lost.value.since == first.position.at


async def test_a_follower_that_keeps_up_is_left_alone(short_uri: str, driver: DriverName) -> None:
    """However much more than the history holds is written, when each part of it was read before it was dropped."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(short_uri)
    async with client, connected(Target(short_uri, "test"), driver) as database:
        stream = MongoChangeStream(database, ["docs"])
        items = cast("AsyncGenerator[StreamItem]", stream.follow(Position(await stream.now())))
        found: list[object] = []
        async with asyncio.timeout(40), aclosing(items) as following:
            for n in range(0, 120, 40):
                await client["test"]["docs"].insert_many([{"_id": i} for i in range(n, n + 40)])
                while n + 39 not in found:
                    item = await anext(following)
                    if isinstance(item.event, DocumentChanged):
                        found.append(item.event.key.raw)
                await anext(following)  # idle: a step that proves the place before it
                await client.admin.command({"secantusAdmin.pruneOplog": 1})
        assert found == list(range(120))


async def test_a_server_whose_history_is_known_is_not_asked(short_uri: str, driver: DriverName) -> None:
    """Its age is reckoned from the present: the embedded server would decode all of it to tell."""
    async with connected(Target(short_uri, "test"), driver) as database:
        stream = MongoChangeStream(database, ["docs"], keeps=timedelta(days=7))
        now, oldest = await stream.now(), await stream.oldest()
        assert oldest is not None
        assert 7 * 86_400 - 5 <= now.time - oldest.time <= 7 * 86_400
        with pytest.raises(HistoryLost):
            await first_change(stream, Position(Timestamp(oldest.time - 60, 1)))
