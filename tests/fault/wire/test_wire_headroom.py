"""How much history is left, where its first entry may not be read: found by trying, and less of it before a loss."""

import pytest
from bson import Timestamp

from tests.support.fake_mongod import FakeMongod
from tests.support.following import follow, until
from tests.support.wire_world import TRICKS, document, leading
from worker.errors import HistoryLost
from worker.model import Position
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.driver import Database

HOUR = 3600


@pytest.fixture
def closed(server: FakeMongod) -> FakeMongod:
    """A server whose `local` this user may not read."""
    server.shows_history = False
    return server


@pytest.mark.parametrize("age", [0, 90, HOUR - 1, HOUR, 5 * HOUR, 200 * HOUR])
async def test_the_first_entry_is_found(closed: FakeMongod, database: Database, age: int) -> None:
    """Never before it, and at most a tenth or a minute behind it; a dozen questions, and none again for a minute."""
    closed.history.oldest = closed.now
    closed.tick(age)
    stream = MongoChangeStream(database, [TRICKS])
    found = await stream.oldest()
    assert found is not None
    assert 0 <= found.time - closed.history.oldest.time <= max(60, age / 10)
    asked = len(closed.asked("probe"))
    assert asked <= 16
    assert await stream.oldest() == found
    assert len(closed.asked("probe")) == asked
    assert not closed.cursors


async def test_what_was_found_is_looked_at_again(closed: FakeMongod, database: Database) -> None:
    """A minute later by the database's clock: it holds, or the search begins from there."""
    closed.history.oldest = closed.now
    closed.tick(5 * HOUR)
    stream = MongoChangeStream(database, [TRICKS])
    found = await stream.oldest()
    asked = len(closed.asked("probe"))
    closed.tick(61)
    assert await stream.oldest() == found
    assert len(closed.asked("probe")) == asked + 1
    closed.history.oldest = closed.tick(0)
    closed.tick(HOUR)
    later = await stream.oldest()
    assert later is not None
    assert 0 <= later.time - closed.history.oldest.time <= HOUR / 10


async def test_a_silent_server_refuses_no_time(closed: FakeMongod, database: Database) -> None:
    """There nothing can be found by trying, and nothing is said."""
    closed.build["secantusVersion"] = "0.7.0"
    assert await MongoChangeStream(database, [TRICKS]).oldest() is None
    assert not closed.asked("probe")


async def test_a_position_that_is_too_old_is_not_searched_for(closed: FakeMongod, database: Database) -> None:
    """MongoDB tells at the opening itself."""
    start = Position(closed.tick())
    closed.forget()
    with pytest.raises(HistoryLost):
        await follow(MongoChangeStream(database, [TRICKS]).follow(start), lambda _: False)
    assert not closed.asked("probe")


async def test_the_headroom_falls_before_the_history_is_lost(closed: FakeMongod, database: Database) -> None:
    """First what the alert HistoryShort looks at, while nothing is lost; after a crash the loss, and one resync."""
    closed.write(TRICKS, document(1, "t", "a"))
    closed.history.oldest = closed.now
    closed.tick(2 * HOUR)
    async with leading(closed, database, hurry=100, kill=True) as life:
        await life.until_stored("t: a")
        await until(lambda: life.figure("history_headroom_seconds") >= HOUR, "headroom")
        life.client.up.clear()
        closed.write(TRICKS, document(2, "t", "b"))
        await until(lambda: "t: b" in life.client.sent, "the outage")
        closed.history.oldest = Timestamp(closed.tick(10 * HOUR).time - 10 * HOUR - HOUR // 2, 1)
        await until(lambda: life.figure("history_headroom_seconds") < HOUR, "less of it")
        await until(lambda: life.figure("watermark_age_seconds") > 60, "being behind")
        assert life.figure("history_headroom_seconds") > 0
        assert life.figure('resyncs_total{reason="history_lost"}') == 0
    closed.forget()
    async with leading(closed, database, hurry=100) as life:
        await life.until_stored("t: a", "t: b")
        assert life.figure('resyncs_total{reason="history_lost"}') == 1
