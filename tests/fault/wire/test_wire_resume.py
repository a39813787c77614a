"""The change stream over the wire: what the driver resumes, with which token, and what it leaves to the outer loop."""

import asyncio

import pytest

from tests.support.fake_mongod import Cut, Event, Fail, FakeMongod, Silence
from tests.support.fake_mongod.history import ALL, place_of, token
from tests.support.following import follow, ids, saw
from worker.errors import HistoryLost, Malformed, Retryable, Unreachable
from worker.model import Passed, Position, SourceArrived, SourceGone, StreamItem
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.driver import Database

TRICKS = "tricks"
TIPS = "tips"
STALL = 0.3


@pytest.fixture
def stream(database: Database) -> MongoChangeStream:
    """The tail of the fake."""
    return MongoChangeStream(database, [TRICKS, TIPS])


def opened_with(server: FakeMongod) -> list[object]:
    """With which token each opening asked to go on; None for one that asked by time."""
    options = [command["pipeline"][0]["$changeStream"] for command in server.asked("watch")]
    return [option.get("resumeAfter", option.get("startAfter")) for option in options]


def at(event: Event) -> object:
    """The token of an event's place."""
    return token((event.at.time, event.at.inc, ALL))


@pytest.mark.parametrize("fault", [Cut(), Cut(after=True), *map(Fail, (43, 189, 91, 11600, 10107))], ids=str)
async def test_a_getmore_that_breaks_is_resumed(
    server: FakeMongod, stream: MongoChangeStream, fault: Fail | Cut
) -> None:
    """M1: reset, cursor gone, stepped down, shutting down: opened once more, where it was; nothing is missed."""
    start = Position(server.tick())
    event = server.write(TRICKS, {"_id": 1})
    server.script.on("getMore", None, fault)

    def enough(found: list[StreamItem]) -> bool:
        if len(found) == 1:
            server.write(TRICKS, {"_id": 2})
        return len(ids(found)) >= 2

    found = await follow(stream.follow(start), enough)
    assert ids(found) == [1, 2]
    assert opened_with(server) == [None, at(event)]


@pytest.mark.parametrize("fault", [Cut(), *map(Fail, (189, 91, 11600, 10107))], ids=str)
async def test_an_opening_that_breaks_is_left_to_the_outer_loop(
    server: FakeMongod, stream: MongoChangeStream, fault: Fail | Cut
) -> None:
    """M2: the driver tries at most once more; what it then raises is Retryable, and the position still opens."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 1})
    server.script.on("watch", fault, fault)
    with pytest.raises(Retryable):
        await follow(stream.follow(start), saw(1))
    assert ids(await follow(stream.follow(start), saw(1))) == [1]


async def test_a_resume_that_breaks_too_is_left_to_the_outer_loop(
    server: FakeMongod, stream: MongoChangeStream
) -> None:
    """M2: getMore, the resume and its repetition fail in a row: Retryable, and the last told step opens again."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 1})
    server.script.on("getMore", None, Fail(189))
    server.script.on("watch", None, Fail(189), Fail(189))
    told: list[StreamItem] = []
    with pytest.raises(Retryable):
        await follow(stream.follow(start), lambda found: bool(told.extend(found[-1:])))
    server.script.calm()
    server.write(TRICKS, {"_id": 2})
    assert ids(await follow(stream.follow(told[-1].position), saw(2))) == [2]


@pytest.mark.parametrize("code", [286, 280, 50811, 260, 10334])
@pytest.mark.parametrize("command", ["watch", "getMore"])
async def test_a_position_that_leads_nowhere_is_a_lost_history(
    server: FakeMongod, stream: MongoChangeStream, command: str, code: int
) -> None:
    """M4, M8, B01, B04: too old, fatal, unreadable, or before an event that is too large: said once, at once."""
    server.script.always(command, Fail(code))
    with pytest.raises(HistoryLost):
        await follow(stream.follow(Position(server.tick())), lambda _: False)
    assert len(server.asked(command)) == 1


async def test_a_foreign_token_is_a_lost_history(server: FakeMongod, stream: MongoChangeStream) -> None:
    """M4: a token that this server cannot read is not passed over, and nothing starts from now by guess."""
    with pytest.raises(HistoryLost):
        await follow(stream.follow(Position(server.tick(), {"_data": "00"})), lambda _: False)


async def test_a_history_that_begins_later_is_lost_before_it_is_asked_for(
    server: FakeMongod, stream: MongoChangeStream
) -> None:
    """M4: where the oldest entry can be seen, a position before it is not even tried."""
    start = Position(server.tick())
    server.forget()
    with pytest.raises(HistoryLost):
        await follow(stream.follow(start), lambda _: False)
    assert not server.asked("watch")


@pytest.mark.parametrize("silent", [("getMore",), ("getMore", "killCursors", "watch", "find"), ("watch",), ("find",)])
async def test_a_stall_is_noticed(server: FakeMongod, database: Database, silent: tuple[str, ...]) -> None:
    """B20: no answer, no error, no close; the deadline ends it, also when closing the cursor is not answered either."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 1})
    stream = MongoChangeStream(database, [TRICKS], stall=STALL)
    for command in silent:
        server.script.always(command, Silence())
    async with asyncio.timeout(STALL * 10):
        with pytest.raises(Unreachable, match="has not answered"):
            await follow(stream.follow(start), saw(1))
    server.script.calm()
    assert ids(await follow(stream.follow(start), saw(1))) == [1]


async def test_a_split_event_is_told_once_and_whole(server: FakeMongod, stream: MongoChangeStream) -> None:
    """M9, B05: three fragments are one change, and no position of a step lies between them."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 1}, fragments=3)
    server.write(TRICKS, {"_id": 2})
    found = await follow(stream.follow(start), saw(1, 2))
    assert ids(found) == [1, 2]
    assert all(place_of(item.position.token or {})[2] in {3, ALL} for item in found)


@pytest.mark.parametrize("cut", [Cut(), Fail(43)], ids=str)
async def test_a_split_event_that_is_cut_leaves_no_position_inside(
    server: FakeMongod, stream: MongoChangeStream, cut: Fail | Cut
) -> None:
    """M9, B05: a batch ends after the first fragment and the connection with it: whole all the same, never half."""
    start = Position(server.tick())
    server.batch = 1
    server.write(TRICKS, {"_id": 1}, fragments=3)
    server.script.on("getMore", None, cut)
    found = await follow(stream.follow(start), saw(1))
    assert ids(found) == [1]
    assert all(place_of(item.position.token or {})[2] in {3, ALL} for item in found)


async def test_a_split_event_that_stays_cut_is_read_again(server: FakeMongod, stream: MongoChangeStream) -> None:
    """B05: the stream dies after a fragment; nothing was told of it, so the last position is before the event."""
    start = Position(server.tick())
    first = server.write(TRICKS, {"_id": 0})
    server.batch = 1
    server.write(TRICKS, {"_id": 1}, fragments=3)
    server.script.on("getMore", None, None, Cut())
    server.script.on("watch", None, Fail(11600), Fail(11600))
    told: list[StreamItem] = []
    with pytest.raises(Retryable):
        await follow(stream.follow(start), lambda found: bool(told.extend(found[-1:])))
    assert [item.position.token for item in told] == [at(first)]
    server.script.calm()
    assert ids(await follow(stream.follow(told[-1].position), saw(1))) == [1]


async def test_a_position_inside_a_split_event_is_lost(server: FakeMongod, stream: MongoChangeStream) -> None:
    """M9: whoever stored it, its beginning cannot be had; the sources are scanned instead of half an event believed."""
    event = server.write(TRICKS, {"_id": 1}, fragments=2)
    inside = Position(event.at, token((event.at.time, event.at.inc, 1)))
    with pytest.raises(HistoryLost):
        await follow(stream.follow(inside), saw(1))


async def test_a_fragment_that_is_missing_is_asked_for_again(server: FakeMongod, stream: MongoChangeStream) -> None:
    """M9: the stream is opened again at the last whole step."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 0})
    odd = {"splitEvent": {"fragment": 2, "of": 2}, "operationType": "update", "ns": {"coll": TRICKS}}
    server.append(Event(server.tick(), odd))
    with pytest.raises(Malformed):
        await follow(stream.follow(start), lambda _: False)


async def test_operations_without_a_document_are_told_as_what_they_are(
    server: FakeMongod, stream: MongoChangeStream
) -> None:
    """B08, M6, M7: none has a document key and none crashes; unknown ones are named, and none is a change."""
    start = Position(server.tick())
    for operation in ("create", "createIndexes", "modify", "reshardCollection", "frobnicate"):
        server.tell(operation, TRICKS)
    server.tell("update", TRICKS)  # of a kind that names no document
    server.tell("drop", TRICKS)
    server.tell("rename", TRICKS, to={"db": "fake", "coll": "elsewhere"})
    server.tell("rename", "elsewhere", to={"db": "fake", "coll": TIPS})
    server.tell("dropDatabase")
    server.append(Event(server.tick(), {"operationType": "invalidate"}))
    found = await follow(stream.follow(start), lambda _: False)
    assert [item.event for item in found if item.event != Passed()] == [
        *map(Passed, ("create", "createIndexes", "modify", "reshardCollection", "frobnicate", "update")),
        SourceGone((TRICKS,), "drop"),
        SourceGone((TRICKS,), "rename"),
        SourceArrived(TIPS),
        SourceGone((TIPS, TRICKS), "dropDatabase"),
        Passed("invalidate"),
    ]


async def test_after_an_invalidation_the_stream_starts_after_it(server: FakeMongod, stream: MongoChangeStream) -> None:
    """M6, B07: `startAfter`, since `resumeAfter` is refused there; and no driver's resume in between."""
    start = Position(server.tick())
    end = server.append(Event(server.tick(), {"operationType": "invalidate"}))
    found = await follow(stream.follow(start), lambda _: False)
    server.write(TRICKS, {"_id": 2})
    assert ids(await follow(stream.follow(found[-1].position), saw(2))) == [2]
    assert server.asked("watch")[-1]["pipeline"][0]["$changeStream"]["startAfter"] == at(end)


async def test_an_idle_stream_goes_on_from_where_others_wrote(server: FakeMongod, stream: MongoChangeStream) -> None:
    """M11, B02: 10,000 writes elsewhere are no event, but the position is behind them, and opens there."""
    start = Position(server.tick())
    for number in range(10_000):
        server.write("other", {"_id": number})
    end = server.now
    found = await follow(stream.follow(start), lambda found: found[-1].position.at >= end)
    assert {item.event for item in found} == {Passed()}
    server.history.events.clear()
    server.history.oldest = end
    server.write(TRICKS, {"_id": 1})
    assert ids(await follow(stream.follow(found[-1].position), saw(1))) == [1]


async def test_old_events_say_how_old_they_are(server: FakeMongod, stream: MongoChangeStream) -> None:
    """B22: three hours behind is said at each step until the stream has caught up, by the database's clock alone."""
    start = Position(server.tick())
    server.write(TRICKS, {"_id": 1})
    server.tick(3 * 3600)
    server.write(TRICKS, {"_id": 2})
    found = await follow(stream.follow(start), lambda found: found[-1].event == Passed())
    behind = [round(item.behind) for item in found if ids([item])]
    assert behind == [3 * 3600, 0]
    assert found[-1].behind == 0
