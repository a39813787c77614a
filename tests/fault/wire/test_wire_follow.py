"""The exact engine's reader over the wire: what it goes on from, what makes it load anew, what it answers meanwhile."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from brain.knowledge.connect import Target, open_client
from brain.knowledge.errors import Fatal, KnowledgeError, Refused, Unavailable, Unreachable
from brain.knowledge.search.follow import MOST_PENDING, Followed
from tests.support.fake_mongod import Cut, Fail, FakeMongod, Silence
from tests.support.fake_mongod.faults import Fault
from tests.support.fake_mongod.server import DATABASE
from tests.support.following import PATIENCE, until
from tests.support.search_stage import PIN, becomes, chunk, content, held, vector

EAST = vector(1)


class Pauses:
    """Waits that take no time but a turn, and are counted."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        """Count it, and let the world turn."""
        self.taken.append(seconds)
        await asyncio.sleep(0.001)


@pytest.fixture
def pauses() -> Pauses:
    """What was waited between attempts."""
    return Pauses()


@pytest.fixture
async def followed(server: FakeMongod, pauses: Pauses) -> AsyncGenerator[Followed]:
    """A reader of a collection with one chunk."""
    server.write(PIN.collection, chunk("t/1/full", EAST))
    async with open_client(Target(server.uri, DATABASE)) as client:
        made = Followed(client[DATABASE][PIN.collection], PIN, pauses)
        yield made
        server.script.calm()
        await made.close()


@pytest.mark.parametrize("fault", [Cut(), Cut(after=True), *map(Fail, (43, 189, 91, 11600, 10107))], ids=str)
async def test_what_the_driver_resumes_needs_no_load(server: FakeMongod, followed: Followed, fault: Fault) -> None:
    """A connection that breaks, an election, a cursor that is gone: the stream goes on from its token."""
    table = await followed.current()
    server.script.on("getMore", fault)
    server.write(PIN.collection, chunk("t/2/full", EAST))
    await until(lambda: content(table) == ["t/1/full", "t/2/full"], "the second chunk")
    assert followed.loads == 1


@pytest.mark.parametrize("fault", [*map(Fail, (286, 280, 13, 4242))], ids=str)
async def test_what_breaks_the_stream_loads_anew(server: FakeMongod, followed: Followed, fault: Fault) -> None:
    """A history that is lost, or anything else that the driver gives up on: what was missed is in the new load."""
    before = await followed.current()
    server.script.on("getMore", fault)
    server.store.rows(PIN.collection).clear()  # what no event tells of
    server.write(PIN.collection, chunk("t/2/full", EAST))
    await becomes(lambda: held(followed), ["t/2/full"])
    assert followed.loads == 2
    assert before is not await followed.current()


async def test_a_position_that_is_lost_while_disconnected(server: FakeMongod, followed: Followed) -> None:
    """The driver resumes with a token that the server does not know any more."""
    await followed.current()
    server.store.rows(PIN.collection).clear()
    server.store.insert(PIN.collection, chunk("t/9/full", EAST))
    server.forget()
    server.disconnect()
    await becomes(lambda: held(followed), ["t/9/full"])
    assert followed.loads >= 2


async def test_never_blank_while_it_loads_anew(server: FakeMongod, followed: Followed) -> None:
    """The last table answers as long as the new load fails; then the new one does."""
    await followed.current()
    server.script.always("find", Fail(462))
    server.script.on("getMore", Fail(286))
    server.store.insert(PIN.collection, chunk("t/2/full", EAST))
    await until(lambda: len(server.asked("watch")) > 3, "some attempts")
    assert await held(followed) == ["t/1/full"]
    server.script.calm()
    await becomes(lambda: held(followed), ["t/1/full", "t/2/full"])


async def test_a_handful_that_cannot_be_read(server: FakeMongod, followed: Followed) -> None:
    """The events are gone then; the load that follows has what they were about."""
    await followed.current()
    server.script.on("find", Fail(4242), Fail(462))
    server.write(PIN.collection, chunk("t/2/full", EAST))
    await becomes(lambda: held(followed), ["t/1/full", "t/2/full"])
    assert followed.loads == 2


@pytest.mark.parametrize(
    ("command", "fault", "wanted"),
    [
        ("find", Fail(13), Refused),
        ("watch", Fail(13), Refused),
        ("watch", Fail(40573), Fatal),
        ("find", Fail(462), Unavailable),
        ("watch", Cut(), Unreachable),
    ],
)
async def test_a_first_load_that_fails(
    server: FakeMongod, followed: Followed, command: str, fault: Fault, wanted: type[KnowledgeError]
) -> None:
    """Each search says why, at once and every time; when the reason is gone so is the error."""
    server.script.always(command, fault)
    for _ in range(3):
        with pytest.raises(wanted) as caught:
            await followed.current()
        assert type(caught.value) is wanted
    server.script.calm()
    await until(lambda: followed.loads == 1, "the load")
    assert await held(followed) == ["t/1/full"]


async def test_a_role_that_may_not_watch_any_more(server: FakeMongod, followed: Followed) -> None:
    """A reader that would never see a change again says so, although it has a table."""
    await followed.current()
    server.script.always("watch", Fail(13))
    server.script.on("getMore", Fail(4242))

    async def refused() -> bool:
        try:
            await followed.current()
        except Refused:
            return True
        return False

    await becomes(refused, wanted=True)
    server.script.calm()
    await becomes(refused, wanted=False)
    assert await held(followed) == ["t/1/full"]


async def test_attempts_come_slower_and_slower(server: FakeMongod, followed: Followed, pauses: Pauses) -> None:
    """From a tenth of a second to five seconds; after a load from the beginning."""
    server.script.always("watch", Fail(4242))
    with pytest.raises(Fatal):
        await followed.current()
    await until(lambda: len(pauses.taken) > 8, "nine attempts")
    assert pauses.taken[:9] == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0]
    server.script.calm()
    await until(lambda: followed.loads == 1, "the load")
    tried = len(pauses.taken)
    server.script.on("getMore", Fail(286))
    await until(lambda: followed.loads == 2, "another load")
    assert pauses.taken[tried] == 0.1


async def test_a_server_that_is_silent_does_not_hold_the_end(server: FakeMongod, followed: Followed) -> None:
    """Closing takes the question back."""
    await followed.current()
    server.script.always("getMore", Silence())
    server.write(PIN.collection, chunk("t/2/full", EAST))
    await until(lambda: bool(server.asked("getMore")), "a question")
    async with asyncio.timeout(PATIENCE):
        await followed.close()


async def test_reads_are_at_least_as_new_as_their_events(server: FakeMongod, followed: Followed) -> None:
    """Majority, after the time of the newest event: a secondary's past must not be taken for the news."""
    table = await followed.current()
    event = server.write(PIN.collection, chunk("t/2/full", EAST))
    await until(lambda: content(table) == ["t/1/full", "t/2/full"], "the second chunk")
    reads = [command["readConcern"] for command in server.asked("find")][-2:]
    assert all(read["level"] == "majority" and read["afterClusterTime"] >= event.at for read in reads)


async def test_many_events_are_taken_up_together(server: FakeMongod, followed: Followed) -> None:
    """One look at a document, however many of its chunks changed; never more than MOST_PENDING events at once."""
    table = await followed.current()
    finds = len(server.asked("find"))
    for number in range(2 * MOST_PENDING):
        server.write(PIN.collection, chunk(f"t/2/part-{number:04}", EAST))
    await until(lambda: len(content(table)) == 2 * MOST_PENDING + 1, "all of them")
    ids = [command["filter"]["_id"]["$in"] for command in server.asked("find")[finds:] if "_id" in command["filter"]]
    assert max(map(len, ids)) <= MOST_PENDING
    assert len(ids) < 50
