"""The whole leader before the fake MongoDB: what a fault on the wire costs, what it shows, and that all comes right."""

import logging

import pytest
from bson import Binary
from bson.raw_bson import RawBSONDocument

from tests.support.fake_mongod import Cut, Fail, FakeMongod, Silence
from tests.support.fake_mongod.history import ALL, place_of
from tests.support.following import until
from tests.support.sim_source import PIN
from tests.support.wire_world import TRICKS, Life, document, leading
from worker.mongo.driver import Database
from worker.mongo.names import CHECKPOINTS, DEAD_LETTERS


def put(server: FakeMongod, number: int, text: str, fragments: int = 1) -> None:
    """The backend writes a trick."""
    server.write(TRICKS, document(number, "t", text), fragments=fragments)


def lose(server: FakeMongod, number: int) -> None:
    """The backend deletes a trick, and nobody will ever tell."""
    rows = server.store.rows(TRICKS)
    del rows[next(key for key, row in rows.items() if row["_id"] == number)]


def first_tokens(server: FakeMongod) -> list[object]:
    """With which token each opening of the worker itself asked to go on, in order."""
    options = [command["pipeline"][0]["$changeStream"] for command in server.asked("watch")]
    return [option["startAfter"]["_data"] for option in options if "startAfter" in option]


def gap_reports(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The gap reports in the log."""
    return [record.__dict__["fields"] for record in caplog.records if record.__dict__.get("action") == "gap_report"]


@pytest.mark.parametrize("command", ["watch", "getMore"])
async def test_a_lost_history_is_one_resync(
    server: FakeMongod, database: Database, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    """M4, M5, B01, B17: 286 at the opening or after it: the token is dropped once, each source scanned once."""
    server.shows_history = False
    for number in (1, 2, 3):
        put(server, number, str(number))
    async with leading(server, database) as life:
        await life.until_stored("t: 1", "t: 2", "t: 3")
        await until(lambda: life.checkpoint()["token"] is not None, "a token")
    lose(server, 2)
    server.store.rows(TRICKS).update(
        {key: {**row, "body": ["new"]} for key, row in server.store.rows(TRICKS).items() if row["_id"] == 3}
    )
    server.script.on(command, Fail(286))
    server.seen.clear()
    with caplog.at_level(logging.INFO):
        async with leading(server, database) as life:
            await life.until_stored("t: 1", "t: new")
            assert life.figure('resyncs_total{reason="history_lost"}') == 1
            assert life.figure('stream_reopens_total{reason="history_lost"}') == 1
            assert life.client.sent == ["t: new"]
            await until(lambda: len(gap_reports(caplog)) == 1, "the report")
    tokens = first_tokens(server)
    assert len(tokens) == len(set(tokens)) == 1
    (report,) = gap_reports(caplog)
    assert str(report.pop("since")) <= str(report.pop("until"))
    assert report == {"sources": TRICKS, "applied": 1, "deleted": 1, "unchanged": 1, "dead_lettered": 0}
    async with leading(server, database) as life:
        await life.until_stored("t: 1", "t: new")
        assert life.figure("resyncs_total") == 0


async def test_a_resync_that_cannot_begin_is_not_silent(server: FakeMongod, database: Database) -> None:
    """B03: history lost and nothing can be written: not ready and saying so, then all comes right."""
    async with leading(server, database) as life:
        put(server, 1, "a")
        await life.until_stored("t: a")
        server.script.always("update", Fail(262))
        server.script.on("getMore", Fail(286))
        await until(lambda: life.figure('stream_reopens_total{reason="history_lost"}') == 1, "the loss")
        await until(lambda: "paused (database)" in life.reasons, "the reason")
        assert not life.board.snapshot().ready
        lose(server, 1)
        server.script.calm()
        await life.until_stored()


async def test_a_stream_that_cannot_be_opened_is_tried_again_with_backoff(
    server: FakeMongod, database: Database
) -> None:
    """M2: not ready meanwhile, a bounded number of openings, each from the last step taken in; nothing is missed."""
    async with leading(server, database) as life:
        put(server, 1, "a")
        await life.until_stored("t: a")
        server.script.always("watch", Fail(11600))
        server.script.on("getMore", Fail(189))
        await until(lambda: life.figure("stream_reopens_total") >= 4, "four openings")
        assert "paused (stream)" in life.reasons
        assert len(server.asked("watch")) <= 4 * 6
        put(server, 2, "b")
        server.script.calm()
        await life.until_stored("t: a", "t: b")


async def test_a_silent_stream_is_opened_again(server: FakeMongod, database: Database) -> None:
    """B20: getMore is not answered while the database moves: noticed, counted, not ready, opened at the last token."""
    async with leading(server, database, stall=0.5) as life:
        put(server, 1, "a")
        await life.until_stored("t: a")
        server.script.always("getMore", Silence())
        put(server, 2, "b")
        await until(lambda: life.figure('stream_reopens_total{reason="Unreachable"}') >= 1, "a reopening")
        await until(lambda: "paused (stream)" in life.reasons, "the reason")
        server.script.calm()
        await life.until_stored("t: a", "t: b")
        assert life.client.sent == ["t: a", "t: b"]


async def test_an_idle_position_is_stored(server: FakeMongod, database: Database) -> None:
    """M11, B02, B15: writes elsewhere move the stored place; a restart behind a short history does nothing."""
    put(server, 1, "a")
    async with leading(server, database) as life:
        await life.until_stored("t: a")
        for number in range(10_000):
            server.write("other", {"_id": number})
        end = server.now
        await until(lambda: life.checkpoint()["at"] >= end, "the position behind them")
    server.history.events.clear()
    server.history.oldest = end
    async with leading(server, database) as life:
        await life.until_stored("t: a")
        assert life.figure("resyncs_total") == 0
        assert life.client.sent == []


async def test_no_position_inside_a_split_event_is_stored(server: FakeMongod, database: Database) -> None:
    """M9, B05: killed between two fragments; what is stored lies before the event, and the next life reads it whole."""
    async with leading(server, database, kill=True) as life:
        put(server, 1, "a")
        await life.until_stored("t: a")
        server.batch = 1
        server.script.on("getMore", None, Silence())
        put(server, 2, "b", fragments=3)
        seen = len(server.asked("getMore"))
        await until(lambda: len(server.asked("getMore")) > seen, "the silence")
        saved = len(server.asked("find"))
        await until(lambda: len(server.asked("find")) > saved + 20, "some turns of the duties")
        for row in server.store.rows(CHECKPOINTS).values():
            assert row["_id"] != "stream" or place_of(row["token"])[2] == ALL
    server.script.calm()
    async with leading(server, database) as life:
        await life.until_stored("t: a", "t: b")


async def test_drop_recreate_and_rename(server: FakeMongod, database: Database) -> None:
    """M6, M7, B06, B07: the database goes and comes back, the collection is renamed there and back: one life."""
    async with leading(server, database) as life:
        put(server, 1, "a")
        await life.until_stored("t: a")
        server.store.rows(TRICKS).clear()
        server.tell("drop", TRICKS)
        server.tell("dropDatabase")
        server.tell("invalidate")
        await life.until_stored()
        put(server, 2, "b")
        await life.until_stored("t: b")
        away = server.store.collections.pop(TRICKS)
        server.tell("rename", TRICKS, to={"db": "fake", "coll": "away"})
        await life.until_stored()
        server.store.collections[TRICKS] = away
        server.tell("rename", "away", to={"db": "fake", "coll": TRICKS})
        await life.until_stored("t: b")
        assert life.figure('stream_reopens_total{reason="invalidated"}') == 1


async def test_operations_of_no_consequence_are_counted(server: FakeMongod, database: Database) -> None:
    """B08: create, createIndexes, modify, unknown: counted by name; no change is received, nobody dies."""
    async with leading(server, database) as life:
        await life.until_stored()
        for operation in ("create", "createIndexes", "modify", "frobnicate", "update"):
            server.tell(operation, TRICKS)
        put(server, 1, "a")
        await life.until_stored("t: a")
        for operation in ("create", "createIndexes", "modify", "frobnicate", "update"):
            assert life.figure(f'stream_ignored_total{{operation="{operation}"}}') == 1
        assert life.figure('events_total{outcome="received",source="tricks"}') == 1


def damaged(number: int, junk: bytes) -> dict[str, object]:
    """A trick with a field that is no BSON: an element of a type that does not exist."""
    inner = b"\x7ax\0" + junk + b"\0"
    field = RawBSONDocument((len(inner) + 4).to_bytes(4, "little") + inner)
    return {**document(number, "t", str(number)), "field": field}


async def test_a_document_that_cannot_be_decoded_steps_aside(server: FakeMongod, database: Database) -> None:
    """Damaged BSON spoils the answer for all that were read with it: the one is found by halving, and has a letter.

    Its tries are counted as long as its bytes are the same; mended, it is stored and has no letter.
    """

    def letters() -> list[tuple[int, str, int]]:
        rows = server.store.rows(DEAD_LETTERS).values()
        return [(row["key"], row["reason"], row["tries"]) for row in rows]

    for number in range(9):
        server.write(TRICKS, damaged(number, b"one") if number == 4 else document(number, "t", str(number)))
    others = [f"t: {number}" for number in range(9) if number != 4]
    async with leading(server, database) as life:
        await life.until_stored(*others)
        assert letters() == [(4, "UnreadableDocument", 1)]
        server.write(TRICKS, damaged(4, b"one"))
        await until(lambda: letters() == [(4, "UnreadableDocument", 2)], "the second try")
        server.write(TRICKS, damaged(4, b"two"))
        await until(lambda: letters() == [(4, "UnreadableDocument", 1)], "the first try of other bytes")
        put(server, 1, "edited")
        others[1] = "t: edited"
        await life.until_stored(*others)
        put(server, 4, "4")
        await life.until_stored(*others, "t: 4")
        await until(lambda: letters() == [], "no letter")


async def test_a_document_that_the_server_cannot_send_steps_aside(server: FakeMongod, database: Database) -> None:
    """10334 for every answer that would hold it: its neighbours are stored, and it has a letter."""
    for number in range(5):
        put(server, number, str(number))
    server.too_large.add(2)
    async with leading(server, database) as life:
        await life.until_stored("t: 0", "t: 1", "t: 3", "t: 4")
        assert [row["key"] for row in server.store.rows(DEAD_LETTERS).values()] == [2]


async def test_a_key_that_a_unique_index_allows_once(server: FakeMongod, database: Database) -> None:
    """Somebody's index refuses one document for ever (11000): it steps aside, those with it are stored, all goes on."""

    def letters() -> list[tuple[int, str]]:
        return [(row["key"], row["reason"]) for row in server.store.rows(DEAD_LETTERS).values()]

    server.store.unique[PIN.collection] = "text"
    for number, text in enumerate(("a", "same", "b", "same", "c")):
        put(server, number, text)
    async with leading(server, database) as life:
        await life.until_stored("t: a", "t: b", "t: c", "t: same")
        await until(lambda: letters() == [(3, "Unstorable")], "its letter")
        assert life.figure('chunks_total{action="written"}') == 4
        put(server, 0, "edited")
        await life.until_stored("t: edited", "t: b", "t: c", "t: same")
        put(server, 3, "another")
        await life.until_stored("t: another", "t: edited", "t: b", "t: c", "t: same")
        await until(lambda: letters() == [], "no letter")


async def test_an_id_that_is_no_uuid_harms_nobody(server: FakeMongod, database: Database) -> None:
    """A binary of the UUID subtype may have any length: as a field, as an `_id`, and in events."""
    odd = Binary(b"xyz", 4)
    server.write(TRICKS, {**document(1, "t", "a"), "field": odd})
    server.write(TRICKS, {**document(2, "t", "b"), "_id": odd})
    server.write(TRICKS, {**document(3, "t", "c"), "_id": Binary(bytes(range(16)), 4)})
    async with leading(server, database) as life:
        await life.until_stored("t: a", "t: b", "t: c")
        server.write(TRICKS, {**document(2, "t", "d"), "_id": odd})
        await life.until_stored("t: a", "t: c", "t: d")
        assert server.store.rows(DEAD_LETTERS) == {}
        assert {row["docId"] for row in server.store.rows(PIN.collection).values()} >= {
            "00010203-0405-0607-0809-0a0b0c0d0e0f"
        }


async def test_a_document_that_is_gone_when_it_is_looked_at(server: FakeMongod, database: Database) -> None:
    """B09: told as updated, deleted before the look: no chunk, no crash."""
    async with leading(server, database) as life:
        put(server, 1, "a")
        await life.until_stored("t: a")
        put(server, 1, "b")
        server.delete(TRICKS, 1)
        await life.until_stored()
        assert life.client.sent == ["t: a"]


async def test_a_target_that_was_down_loses_nothing(server: FakeMongod, database: Database) -> None:
    """B13: every write fails during fifty edits; afterwards the last of each is stored, and only that."""
    async with leading(server, database) as life:
        put(server, 0, "x")
        await life.until_stored("t: x")
        server.script.always("update", Cut())
        for round_ in range(5):
            for number in range(10):
                put(server, number, f"{number} {round_}")
        await until(lambda: "paused (database)" in life.reasons, "the reason")
        server.script.calm()
        await life.until_stored(*(f"t: {number} 4" for number in range(10)))


async def test_nothing_falls_between_the_scan_and_the_stream(server: FakeMongod, database: Database) -> None:
    """B14: the stream opens long after the first scan is done; what happened in between is there."""
    for number in (1, 2):
        put(server, number, str(number))
    server.script.always("watch", Fail(11600))
    async with leading(server, database) as life:
        await until(lambda: life.figure('chunks_total{action="written"}') == 2, "the scan")
        put(server, 3, "inserted")
        put(server, 1, "edited")
        server.delete(TRICKS, 2)
        server.script.calm()
        await life.until_stored("t: edited", "t: inserted")


async def test_an_old_backlog_is_seen(server: FakeMongod, database: Database) -> None:
    """B22: three hours behind is not ready, and both figures say three hours; B23: after it, near zero."""
    hours = 3 * 3600.0
    server.tick(-int(hours))
    server.history.oldest = server.now
    async with leading(server, database) as life:
        await life.until_stored()
    put(server, 1, "a")
    put(server, 2, "b")
    server.tick(int(hours))
    server.batch = 1
    server.script.on("getMore", None, Silence())
    async with leading(server, database) as life:
        await until(lambda: "behind" in life.reasons, "the reason")
        assert not life.board.snapshot().ready
        assert life.figure("watermark_age_seconds") >= hours
        await until(lambda: life.figure("lag_seconds_count") == 1, "the outcome")
        assert life.figure("lag_seconds_sum") == pytest.approx(hours, abs=60)
        assert life.figure("watermark_age_seconds") >= hours
        server.disconnect()
        await life.until_stored("t: a", "t: b")
        await _calm(life)


async def _calm(life: Life) -> None:
    await until(lambda: not life.reasons, "readiness")
    turns = len(life.server.asked("getMore"))
    await until(lambda: len(life.server.asked("getMore")) > turns + 20, "twenty idle answers")
    assert life.figure("watermark_age_seconds") < 10
    assert not life.reasons


async def test_after_a_burst_nothing_is_late(server: FakeMongod, database: Database) -> None:
    """B23: a burst, then idle answers only: the watermark's age is near zero and stays there."""
    async with leading(server, database) as life:
        for number in range(500):
            put(server, number, str(number))
        await life.until_stored(*(f"t: {number}" for number in range(500)))
        await _calm(life)


async def test_a_database_that_is_away_for_long_costs_nothing(server: FakeMongod, database: Database) -> None:
    """M16: half an hour of refused connections: not ready, a bounded number of tries, and all is well at once after."""
    async with leading(server, database, hurry=600) as life:
        put(server, 1, "a")
        await life.until_stored("t: a")
        server.down = True
        server.disconnect()
        began = life.clock.monotonic()
        await until(lambda: "paused (stream)" in life.reasons, "the reason")
        await until(lambda: life.clock.monotonic() - began > 1800, "half an hour")
        assert life.figure("stream_reopens_total") < 100
        put(server, 2, "b")
        server.down = False
        await life.until_stored("t: a", "t: b")
