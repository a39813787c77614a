"""The contract of `worker.ports.ChangeStream`, over both drivers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

import pytest
from bson import Timestamp
from pymongo.asynchronous.database import AsyncDatabase

from worker.errors import HistoryLost, KnowledgeError
from worker.model import (
    DocKey,
    DocumentChanged,
    Passed,
    Position,
    SourceArrived,
    SourceGone,
    StreamItem,
)
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.driver import Database
from worker.mongo.tokens import token_time

Backend = AsyncDatabase[dict[str, Any]]
WATCHED = ("trickipedia", "docs")
SECONDS = 20


@pytest.fixture
def stream(database: Database) -> MongoChangeStream:
    """The tail of the test's database."""
    return MongoChangeStream(database, WATCHED)


async def gather(
    items: AsyncIterator[StreamItem], enough: Callable[[list[StreamItem]], bool], *, idle: bool = False
) -> list[StreamItem]:
    """The items up to the one that makes it enough; idle steps are left out unless asked for."""
    found: list[StreamItem] = []
    async with asyncio.timeout(SECONDS), aclosing(cast("AsyncGenerator[StreamItem]", items)) as following:
        async for item in following:
            if idle or item.event != Passed():
                found.append(item)
            if enough(found):
                break
    return found


def changed(found: list[StreamItem]) -> list[object]:
    """The ids of the changed documents."""
    return [item.event.key.raw for item in found if isinstance(item.event, DocumentChanged)]


def count(number: int) -> Callable[[list[StreamItem]], bool]:
    """Enough when there are so many."""
    return lambda found: len(found) >= number


async def test_every_kind_of_write_is_told_in_order(stream: MongoChangeStream, backend: Backend) -> None:
    """Insert, update, replace, delete of watched collections, and of no other one."""
    start = await stream.now()
    await backend["other"].insert_one({"_id": 0})
    await backend["trickipedia"].insert_one({"_id": 1})
    await backend["trickipedia"].update_one({"_id": 1}, {"$set": {"a": 1}})
    await backend["docs"].insert_one({"_id": "d"})
    await backend["docs"].replace_one({"_id": "d"}, {"b": 1})
    await backend["trickipedia"].delete_one({"_id": 1})
    found = await gather(stream.follow(Position(start)), count(5))
    assert changed(found) == [1, 1, "d", "d", 1]
    assert all(isinstance(item.event, DocumentChanged) and item.event.wall is not None for item in found)
    times = [item.position.at for item in found]
    assert times == sorted(times)
    assert times[0] > start


async def test_each_position_is_resumable(stream: MongoChangeStream, backend: Backend) -> None:
    """Following again from any item gives exactly what came after it."""
    start = await stream.now()
    await backend["trickipedia"].insert_many([{"_id": n} for n in range(6)])
    found = await gather(stream.follow(Position(start)), count(6))
    for place, item in enumerate(found[:-1]):
        rest = await gather(stream.follow(item.position), count(5 - place))
        assert changed(rest) == list(range(place + 1, 6))


async def test_an_idle_stream_moves(stream: MongoChangeStream, backend: Backend) -> None:
    """Writes elsewhere give no event, but the token and its time advance, and what came before is behind them."""
    start = await stream.now()
    await backend["trickipedia"].insert_one({"_id": 1})
    first = (await gather(stream.follow(Position(start)), count(1)))[0]
    await backend["other"].insert_one({"_id": 1})
    middle = await stream.now()

    def caught_up(found: list[StreamItem]) -> bool:
        return bool(found) and found[-1].position.at >= middle

    idle = await gather(stream.follow(first.position), caught_up, idle=True)
    assert {item.event for item in idle} == {Passed()}
    assert idle[-1].position.token != first.position.token
    await backend["trickipedia"].insert_one({"_id": 2})
    assert changed(await gather(stream.follow(idle[-1].position), count(1))) == [2]


async def test_a_position_is_never_later_than_its_place(stream: MongoChangeStream, backend: Backend) -> None:
    """Starting again at the time of an idle position, without its token, misses nothing that comes after the token."""
    items = stream.follow(Position(await stream.now()))
    positions: list[Position] = []
    async with asyncio.timeout(SECONDS), aclosing(cast("AsyncGenerator[StreamItem]", items)) as following:
        async for item in following:
            if isinstance(item.event, DocumentChanged):
                after = item.event.key.raw
                assert all(position.at <= item.position.at for position in positions)
                if after == 3:
                    break
            positions.append(item.position)
            await backend["trickipedia"].insert_one({"_id": len(positions)})
    for place, position in enumerate(positions):
        found = await gather(stream.follow(Position(position.at)), lambda got: 3 in changed(got))
        assert set(changed(found)) >= set(range(place + 1, 4))


async def test_a_stream_that_catches_up_does_not_say_now(stream: MongoChangeStream, backend: Backend) -> None:
    """In a backlog of other collections' writes the positions are as old as the places, not as the answers."""
    start = await stream.now()
    await backend["other"].insert_many([{"_id": n} for n in range(5_000)])
    await backend["trickipedia"].insert_one({"_id": 1})
    end = await stream.now()
    steps = await gather(stream.follow(Position(start)), lambda found: bool(changed(found)), idle=True)
    for item in steps:
        place = token_time(item.position.token or {})
        assert place is not None
        assert item.position.at <= max(place, start)
    assert any(item.position.at < end for item in steps[:-1])


async def test_a_dropped_and_a_renamed_source_are_gone(stream: MongoChangeStream, backend: Backend) -> None:
    """Drop and rename away say which source; a rename into a watched name says that it arrived."""
    start = await stream.now()
    await backend["docs"].insert_one({"_id": 1})
    await backend["docs"].drop()
    await backend["trickipedia"].insert_one({"_id": 1})
    await backend["trickipedia"].rename("elsewhere")
    await backend["elsewhere"].rename("docs")
    await backend["docs"].rename("trickipedia")
    found = await gather(stream.follow(Position(start)), count(6))
    assert [item.event for item in found if not isinstance(item.event, DocumentChanged)] == [
        SourceGone(("docs",), "drop"),
        SourceGone(("trickipedia",), "rename"),
        SourceArrived("docs"),
        SourceArrived("trickipedia", gone="docs"),
    ]


async def test_a_dropped_database_ends_the_stream_and_it_goes_on(stream: MongoChangeStream, backend: Backend) -> None:
    """After the invalidation the last position opens the next stream (M6), which sees what is new."""
    start = await stream.now()
    await backend["trickipedia"].insert_one({"_id": 1})
    await backend.client.drop_database(backend.name)
    found = await gather(stream.follow(Position(start)), lambda _found: False)
    operations = [item.event.operation for item in found if isinstance(item.event, SourceGone)]
    assert "dropDatabase" in operations
    assert found[-1].event == Passed("invalidate")
    await backend["trickipedia"].insert_one({"_id": 2})
    assert changed(await gather(stream.follow(found[-1].position), count(1))) == [2]


async def test_a_transaction_of_a_thousand_writes_arrives_whole(stream: MongoChangeStream, backend: Backend) -> None:
    """All of it, at one time, and resumable in its middle (M10)."""
    await backend["trickipedia"].insert_one({"_id": -1})
    start = await stream.now()
    async with backend.client.start_session() as session, await session.start_transaction():
        await backend["trickipedia"].insert_many([{"_id": n} for n in range(1000)], session=session)
    found = await gather(stream.follow(Position(start)), lambda got: 999 in changed(got))
    mine = [item for item in found if isinstance(item.event, DocumentChanged) and item.event.key.raw != -1]
    assert changed(mine) == list(range(1000))
    assert len({item.position.at for item in mine}) == 1
    rest = await gather(stream.follow(mine[499].position), count(500))
    assert changed(rest) == list(range(500, 1000))


async def test_a_position_older_than_the_history_is_lost(stream: MongoChangeStream) -> None:
    """Neither a token nor a time from before the history is gone on from silently (M4)."""
    oldest = await stream.oldest()
    assert oldest is not None
    with pytest.raises(HistoryLost):
        await gather(stream.follow(Position(Timestamp(oldest.time - 1, 1))), count(1), idle=True)


async def test_a_token_that_is_none_is_not_followed(stream: MongoChangeStream) -> None:
    """A damaged token is a lost position or a plain refusal: never a start from now."""
    position = Position(await stream.now(), {"_data": "nonsense"})
    with pytest.raises(KnowledgeError):
        await gather(stream.follow(position), count(1), idle=True)


async def test_two_streams_of_one_process_do_not_disturb_each_other(
    stream: MongoChangeStream, backend: Backend
) -> None:
    """Each follows from its own position."""
    start = await stream.now()
    await backend["trickipedia"].insert_many([{"_id": n} for n in range(3)])
    both = await asyncio.gather(
        gather(stream.follow(Position(start)), count(3)), gather(stream.follow(Position(start)), count(3))
    )
    assert [changed(found) for found in both] == [[0, 1, 2], [0, 1, 2]]
    assert all(
        isinstance(item.event, DocumentChanged) and item.event.key == DocKey.of("trickipedia", item.event.key.raw)
        for item in both[0]
    )
