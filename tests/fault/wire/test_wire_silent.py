"""A server whose open streams go on silently where the history is gone: the loss is told all the same, on every way."""

import math
from collections.abc import Callable

import pytest

from tests.support.fake_mongod import FakeMongod
from tests.support.following import Enough, follow, ids, saw
from worker.errors import HistoryLost
from worker.model import Position, StreamItem
from worker.mongo import silent
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.driver import Database
from worker.mongo.silent import PROVEN_STEPS

TRICKS = "tricks"


@pytest.fixture
def stream(server: FakeMongod, database: Database) -> MongoChangeStream:
    """The tail of a server that says it is SecantusDB."""
    server.build["secantusVersion"] = "0.7.0"
    return MongoChangeStream(database, [TRICKS])


def after_the_first(act: Callable[[], None], told: list[object] | None = None) -> Enough:
    """Never enough; act when one document was told, and keep which were."""

    def enough(found: list[StreamItem]) -> bool:
        changed = ids(found)
        if told is not None:
            told[:] = changed
        if ids(found[-1:]) and len(changed) == 1:
            act()
        return False

    return enough


async def test_a_stream_that_was_overtaken_is_lost(server: FakeMongod, stream: MongoChangeStream) -> None:
    """From the last place that was proven, and not from where it went on."""
    start = Position(server.tick())
    first = server.write(TRICKS, {"_id": 1})

    def overtake() -> None:
        server.write(TRICKS, {"_id": 2})
        server.forget()
        server.write(TRICKS, {"_id": 3})

    with pytest.raises(HistoryLost) as lost:
        await follow(stream.follow(start), after_the_first(overtake))
    assert lost.value.since == first.at


async def test_many_steps_at_once_are_not_all_told_first(server: FakeMongod, stream: MongoChangeStream) -> None:
    """However fast they come."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 0})
    told: list[object] = []

    def overtake() -> None:
        server.forget()
        for number in range(1, 3 * PROVEN_STEPS):
            server.write(TRICKS, {"_id": number})

    with pytest.raises(HistoryLost):
        await follow(stream.follow(start), after_the_first(overtake, told))
    assert 1 <= len(told) <= PROVEN_STEPS


async def test_an_invalidation_is_not_told_before_what_led_to_it(server: FakeMongod, stream: MongoChangeStream) -> None:
    """The next stream opens behind it, where nothing tells of a gap before it."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 1})

    def overtake() -> None:
        server.forget()
        server.tell("invalidate")

    with pytest.raises(HistoryLost):
        await follow(stream.follow(start), after_the_first(overtake))


async def test_what_was_not_proven_is_remembered_when_the_stream_ends(
    server: FakeMongod, stream: MongoChangeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place that it had come to opens again, and still the gap before it is told."""
    start = Position(server.tick())
    first = server.write(TRICKS, {"_id": 1})
    found: list[StreamItem] = []

    def enough(items: list[StreamItem]) -> bool:
        if ids(items) == [1]:
            server.forget()
            server.write(TRICKS, {"_id": 2})
        found[:] = items
        return 2 in ids(items)

    with monkeypatch.context() as patient:
        patient.setattr(silent, "PROVEN_SECONDS", math.inf)
        await follow(stream.follow(start), enough)
    with pytest.raises(HistoryLost) as lost:
        await follow(stream.follow(found[-1].position), lambda _: False)
    assert lost.value.since == first.at


async def test_another_position_begins_anew(
    server: FakeMongod, stream: MongoChangeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a loss the tail goes on from the present: what was not proven before it counts no longer."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 1})
    monkeypatch.setattr(silent, "PROVEN_SECONDS", 0.0)
    await follow(stream.follow(start), saw(1))
    server.forget()
    present = Position(server.tick())
    server.write(TRICKS, {"_id": 2})
    turns = len(server.asked("getMore")) + 5
    found = await follow(stream.follow(present), lambda _: len(server.asked("getMore")) > turns)
    assert ids(found) == [2]


async def test_a_stream_that_keeps_up_is_left_alone(server: FakeMongod, stream: MongoChangeStream) -> None:
    """What is dropped behind it was read."""
    start = Position(server.tick())
    for number in range(2 * PROVEN_STEPS):
        server.write(TRICKS, {"_id": number})
    found = await follow(stream.follow(start), saw(*range(2 * PROVEN_STEPS)))
    assert ids(found) == list(range(2 * PROVEN_STEPS))
    assert len(server.asked("probe")) == 1


async def test_mongodb_is_not_asked(server: FakeMongod, database: Database) -> None:
    """It tells by itself."""
    start = Position(server.tick())
    for number in range(2 * PROVEN_STEPS):
        server.write(TRICKS, {"_id": number})
    await follow(MongoChangeStream(database, [TRICKS]).follow(start), saw(*range(2 * PROVEN_STEPS)))
    assert not server.asked("probe")
