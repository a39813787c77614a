"""The contracts of `worker.ports.Checkpoints`, `DeadLetters` and `Requests`."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId, Timestamp
from pymongo.asynchronous.database import AsyncDatabase

from worker.clock import SystemClock
from worker.errors import FencedOff, ForeignState, LeaseGone
from worker.model import Checkpoint, DeadLetter, DocKey, Gap, Leadership, Position, Scan
from worker.mongo.checkpoints import MongoCheckpoints
from worker.mongo.dead_letters import MongoDeadLetters
from worker.mongo.driver import Database
from worker.mongo.lease import MongoLease
from worker.mongo.requests import MongoRequests
from worker.ports import Checkpoints

Backend = AsyncDatabase[dict[str, Any]]
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
POSITION = Position(Timestamp(1_000_000, 3), {"_data": "8265"})
SCAN = Scan(
    "trickipedia", "first", "v1", done=False, after=DocKey.of("trickipedia", ObjectId()), started_at=NOON, seen=7
)
GAP = Gap(Timestamp(5, 1), Timestamp(9, 2), ("docs", "spots"), NOON, {"applied": 3, "dead_lettered": 1})


async def successor(database: Database) -> tuple[Leadership, Leadership]:
    """A leader that is over, and the one that leads."""
    lease = MongoLease(database, SystemClock())
    former = await lease.acquire()
    assert former is not None
    await lease.release(former)
    leader = await lease.acquire()
    assert leader is not None
    return former, leader


@pytest.fixture
def checkpoints(database: Database) -> Checkpoints:
    """The port under test; `test_simulated_checkpoints` has the simulation's."""
    return MongoCheckpoints(database)


@pytest.fixture
async def leaders(database: Database) -> tuple[Leadership, Leadership]:
    """A leader that is over, and the one that leads."""
    return await successor(database)


async def test_positions_come_back_as_they_were(
    checkpoints: Checkpoints, leaders: tuple[Leadership, Leadership]
) -> None:
    """With and without a token; the newest one counts; scans by source, with ids of any type."""
    _, leader = leaders
    assert await checkpoints.load() is None
    assert await checkpoints.scans() == {}
    await checkpoints.save(Checkpoint(Position(Timestamp(1, 1)), NOON), leader)
    assert await checkpoints.load() == Checkpoint(Position(Timestamp(1, 1)), NOON)
    told = Checkpoint(POSITION, NOON, frozenset({"docs", "trickipedia"}))
    await checkpoints.save(told, leader)
    assert await checkpoints.load() == told
    await checkpoints.save_scan(SCAN, leader)
    docs = Scan("docs", "first", "v1", done=True, after=DocKey.of("docs", {"a": 1}), finished_at=NOON)
    await checkpoints.save_scan(docs, leader)
    found = await checkpoints.scans()
    assert found == {"trickipedia": SCAN, "docs": docs}
    after = found["docs"].after
    assert after is not None
    assert after.raw == {"a": 1}


async def test_a_gap_is_there_until_it_is_taken_away(
    checkpoints: Checkpoints, leaders: tuple[Leadership, Leadership]
) -> None:
    """As it was stored, by the leader alone; it is none of the scans."""
    former, leader = leaders
    assert await checkpoints.gap() is None
    await checkpoints.save_gap(GAP, leader)
    assert await checkpoints.gap() == GAP
    assert await checkpoints.scans() == {}
    for refused in (replace(GAP, outcomes={}), None):
        with pytest.raises(FencedOff):
            await checkpoints.save_gap(refused, former)
    assert await checkpoints.gap() == GAP
    await checkpoints.save_gap(None, leader)
    assert await checkpoints.gap() is None
    await checkpoints.save_gap(None, leader)


@pytest.mark.parametrize("change", [{"format": 2}, {"since": 5}, {"sources": [1]}, {"outcomes": None}])
async def test_a_gap_that_cannot_be_read_is_none(
    database: Database, backend: Backend, leaders: tuple[Leadership, Leadership], change: dict[str, Any]
) -> None:
    """A report is not worth a worker that does not start."""
    checkpoints = MongoCheckpoints(database)
    await checkpoints.save_gap(GAP, leaders[1])
    await backend["freshness_checkpoints"].update_one({"_id": "gap"}, {"$set": change})
    assert await checkpoints.gap() is None


async def test_a_former_leader_moves_no_position(
    checkpoints: Checkpoints, leaders: tuple[Leadership, Leadership]
) -> None:
    """Neither before the one that leads has written anything, nor afterwards; what that one wrote stays."""
    former, leader = leaders
    with pytest.raises(FencedOff):
        await checkpoints.save(Checkpoint(POSITION, NOON), former)
    with pytest.raises(FencedOff):
        await checkpoints.save_scan(SCAN, former)
    assert await checkpoints.load() is None
    assert await checkpoints.scans() == {}
    await checkpoints.save(Checkpoint(POSITION, NOON), leader)
    await checkpoints.save_scan(SCAN, leader)
    with pytest.raises(FencedOff):
        await checkpoints.save(Checkpoint(Position(Timestamp(1, 1)), NOON), former)
    with pytest.raises(FencedOff):
        await checkpoints.save_scan(Scan("trickipedia", "late", "v1", done=True), former)
    assert await checkpoints.load() == Checkpoint(POSITION, NOON)
    assert (await checkpoints.scans())["trickipedia"] == SCAN


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"$set": {"format": 2}}, "format 2"),
        ({"$unset": {"format": ""}}, "format None"),
        ({"$set": {"database": "elsewhere"}}, "another database"),
        ({"$unset": {"at": ""}}, "damaged"),
        ({"$set": {"at": 5}}, "damaged"),
        ({"$set": {"token": "text"}}, "damaged"),
        ({"$unset": {"savedAt": ""}}, "damaged"),
        ({"$set": {"sources": "text"}}, "damaged"),
        ({"$set": {"sources": [1]}}, "damaged"),
    ],
)
async def test_a_foreign_or_damaged_position_is_refused(
    database: Database, backend: Backend, change: dict[str, Any], said: str
) -> None:
    """Never a start from now by guess (M13)."""
    checkpoints = MongoCheckpoints(database)
    _, leader = await successor(database)
    await checkpoints.save(Checkpoint(POSITION, NOON), leader)
    await backend["freshness_checkpoints"].update_one({"_id": "stream"}, change)
    with pytest.raises(ForeignState, match=said):
        await checkpoints.load()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"$set": {"format": 2}}, "scan/trickipedia .* format 2.*run the newer version"),
        ({"$unset": {"format": ""}}, "format None"),
        ({"$unset": {"source": ""}}, "damaged"),
        ({"$set": {"source": "docs"}}, "damaged"),
        ({"$unset": {"reason": ""}}, "scan/trickipedia .* damaged: remove it"),
        ({"$unset": {"shape": ""}}, "damaged"),
        ({"$set": {"done": "yes"}}, "damaged"),
        ({"$set": {"after": "x"}}, "damaged"),
        ({"$set": {"after": {}}}, "damaged"),
        ({"$set": {"startedAt": 5}}, "damaged"),
        ({"$set": {"finishedAt": "today"}}, "damaged"),
        ({"$set": {"seen": "many"}}, "damaged"),
    ],
)
async def test_a_foreign_or_damaged_scan_is_refused(
    database: Database, backend: Backend, change: dict[str, Any], said: str
) -> None:
    """Neither gone on from by guess, nor written over."""
    checkpoints = MongoCheckpoints(database)
    _, leader = await successor(database)
    await checkpoints.save_scan(SCAN, leader)
    await backend["freshness_checkpoints"].update_one({"_id": "scan/trickipedia"}, change)
    with pytest.raises(ForeignState, match=said):
        await checkpoints.scans()


async def test_a_position_of_before_the_sources_were_noted_speaks_for_none(
    database: Database, backend: Backend
) -> None:
    """An older version wrote it: nobody knows what it watched."""
    checkpoints = MongoCheckpoints(database)
    _, leader = await successor(database)
    await checkpoints.save(Checkpoint(POSITION, NOON, frozenset({"docs"})), leader)
    await backend["freshness_checkpoints"].update_one({"_id": "stream"}, {"$unset": {"sources": ""}})
    assert await checkpoints.load() == Checkpoint(POSITION, NOON)


async def test_positions_go_with_the_lease(database: Database, backend: Backend) -> None:
    """Where the database was dropped nobody is ahead of this one, and that is said by type."""
    checkpoints = MongoCheckpoints(database)
    _, leader = await successor(database)
    await backend.client.drop_database(backend.name)
    with pytest.raises(LeaseGone):
        await checkpoints.save(Checkpoint(POSITION, NOON), leader)
    with pytest.raises(LeaseGone):
        await checkpoints.save_scan(SCAN, leader)
    assert await backend["freshness_checkpoints"].find_one() is None


async def test_one_letter_a_document(database: Database) -> None:
    """A second one replaces the first; they are listed oldest first, dropped by key, and fenced."""
    letters = MongoDeadLetters(database)
    former, leader = await successor(database)
    one, two = DocKey.of("trickipedia", ObjectId()), DocKey.of("spots", {"a": 1})
    second = DeadLetter(two, Timestamp(2, 1), "d1", "poison", "digest", 2, NOON, NOON + timedelta(hours=1))
    await letters.put(second, leader)
    await letters.put(DeadLetter(one, Timestamp(1, 1), "d1", "poison", "d", 1, NOON, NOON), leader)
    again = DeadLetter(one, Timestamp(3, 1), "d1", "unreadable", "e", 2, NOON - timedelta(hours=1), NOON)
    await letters.put(again, leader)
    assert await letters.all() == [again, second]
    assert await letters.count() == 2
    for refused in (letters.put(again, former), letters.drop([one], former)):
        with pytest.raises(FencedOff):
            await refused
    assert await letters.drop([one, DocKey.of("docs", 1)], leader) == 1
    assert await letters.all() == [second]


async def test_a_request_is_done_by_the_leader(database: Database) -> None:
    """Oldest first, one at a time, again for a successor; the result is there when it is finished."""
    requests = MongoRequests(database, SystemClock())
    former, leader = await successor(database)
    assert await requests.take(former) is None
    first = await requests.submit("backfill", {"source": "docs"})
    second = await requests.submit("repair", {})
    begun = await requests.take(former)
    assert begun is not None
    assert (begun.id, begun.kind, begun.arguments) == (first, "backfill", {"source": "docs"})
    # The answer to the first take may have been lost.
    assert await requests.take(former) == begun
    assert await requests.result(first) is None
    assert await requests.take(leader) == replace(begun, again=True)
    with pytest.raises(FencedOff):
        await requests.finish(begun, {"ok": False}, former)
    assert await requests.take(former) != begun
    await requests.finish(begun, {"ok": True, "seen": 5}, leader)
    assert await requests.result(first) == {"ok": True, "seen": 5}
    last = await requests.take(leader)
    assert last is not None
    assert last.id == second
    assert await requests.result("unknown") is None
    await requests.abandon(last.id)
    await requests.finish(last, {"ok": True}, leader)
    assert await requests.result(last.id) is None


async def test_a_change_of_generations_waits_for_no_other_request(database: Database) -> None:
    """Each of the two lanes has its own oldest."""
    requests = MongoRequests(database, SystemClock())
    _, leader = await successor(database)
    work = await requests.submit("backfill", {})
    change = await requests.submit("pin", {"act": "rollback"})
    begun, also = await requests.take(leader), await requests.take(leader, pins=True)
    assert begun is not None
    assert also is not None
    assert (begun.id, also.id) == (work, change)
    await requests.finish(also, {"changed": True}, leader)
    assert await requests.take(leader, pins=True) is None
    assert await requests.take(leader) == begun


async def test_a_request_that_nobody_has_begun_can_be_withdrawn(database: Database) -> None:
    """One that was begun stays: its leader finishes it."""
    requests = MongoRequests(database, SystemClock())
    _, leader = await successor(database)
    await requests.withdraw(await requests.submit("look", {}))
    assert await requests.take(leader) is None
    request_id = await requests.submit("look", {})
    begun = await requests.take(leader)
    assert begun is not None
    await requests.withdraw(request_id)
    await requests.finish(begun, {"looked": 0}, leader)
    assert await requests.result(request_id) == {"looked": 0}
