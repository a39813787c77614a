"""Reads and writes over the wire: each fault has one kind of error, and nothing is stored twice or by halves."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from bson import Timestamp

from brain.knowledge.chunk import Metadata, chunk_id, text_hash
from brain.knowledge.connect import Target
from brain.knowledge.pin import Pin
from tests.support.fake_mongod import Cut, Fail, FakeMongod, ItemsFail, LateFail, Silence
from tests.support.fake_mongod.server import DATABASE
from worker.clock import SystemClock
from worker.errors import (
    Conflict,
    Fatal,
    FencedOff,
    Poison,
    Refused,
    Retryable,
    Unreachable,
    WrongTopology,
)
from worker.model import Checkpoint, ChunkDraft, Delta, DocKey, Leadership, LedgerRow, Position, Publication
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.checkpoints import MongoCheckpoints
from worker.mongo.documents import MongoDocuments
from worker.mongo.driver import Database, DriverName, connected
from worker.mongo.knowledge import MongoKnowledge
from worker.mongo.lease import MongoLease
from worker.mongo.names import CHECKPOINTS, LEASE_ID, LEASES, LEDGER
from worker.mongo.topology import check_server
from worker.mongo.transactions import TRANSACTION_TRIES

PIN = Pin("test/model", 4)
LEADERSHIP = Leadership(1)
OLLIE = DocKey.of("tricks", 1)
NOW = datetime(2026, 11, 30, tzinfo=UTC)
CHECKPOINT = Checkpoint(Position(Timestamp(7, 1), {"_data": "x"}), NOW)
TRANSIENT = ("TransientTransactionError",)
UNKNOWN = ("UnknownTransactionCommitResult",)

Attempt = Callable[[], Coroutine[Any, Any, object]]


def publication(text: str, second: int = 7) -> Publication:
    """The ollie with one chunk."""
    metadata = Metadata("trick", "Ollie", "skateboarding", "/ollie", {"trickName": "Ollie"})
    draft = ChunkDraft(chunk_id(str(OLLIE), "0"), text, metadata, text_hash(text), text_hash(text), 3)
    version = Timestamp(second, 1)
    delta = Delta(OLLIE, version, write=(draft,), ledger=LedgerRow(OLLIE, version))
    return Publication(delta, {draft.text_hash: np.array([1, 0, 0, 0], dtype=np.float32)})


@pytest.fixture
async def checkpoints(database: Database) -> MongoCheckpoints:
    """The positions of the fake, with this process as the leader."""
    await database.insert(LEASES, {"_id": LEASE_ID, "epoch": LEADERSHIP.epoch, "beat": 0, "holder": None})
    return MongoCheckpoints(database)


@pytest.fixture
async def store(database: Database, checkpoints: MongoCheckpoints) -> MongoKnowledge:
    """The chunks of the fake, with this process as the leader."""
    return MongoKnowledge(database, PIN, SystemClock())


def texts(server: FakeMongod) -> list[str]:
    """What is stored."""
    return [row["text"] for row in server.store.rows(PIN.collection).values()]


async def again(attempt: Attempt, tries: int = 10) -> object:
    """As the pipeline does: whatever is Retryable is tried again."""
    for _ in range(tries):
        try:
            return await attempt()
        except Retryable:
            continue
    raise AssertionError


@pytest.mark.parametrize("fault", [Fail(10107), Fail(189), Fail(91), Fail(11600), Cut(), Cut(after=True)], ids=str)
async def test_a_checkpoint_survives_a_stepdown(
    server: FakeMongod, checkpoints: MongoCheckpoints, fault: Fail | Cut
) -> None:
    """M3: the write is Retryable, also after the driver's own repetition, and is there once tried again."""
    server.script.always("update", fault)
    with pytest.raises(Retryable):
        await checkpoints.save(CHECKPOINT, LEADERSHIP)
    server.script.calm()
    assert await checkpoints.load() is None
    server.script.on("update", fault, fault)
    await again(lambda: checkpoints.save(CHECKPOINT, LEADERSHIP))
    assert await checkpoints.load() == CHECKPOINT


async def test_a_checkpoint_whose_durability_is_unknown_is_stored_again(
    server: FakeMongod, checkpoints: MongoCheckpoints
) -> None:
    """M12: a write concern that timed out (64) is not success: by one driver committed again, told by the other."""
    server.script.on("commitTransaction", LateFail(64))
    await again(lambda: checkpoints.save(CHECKPOINT, LEADERSHIP))
    assert len(server.asked("commitTransaction")) == 2
    assert await checkpoints.load() == CHECKPOINT
    assert len(server.store.rows(CHECKPOINTS)) == 1


async def test_a_write_that_is_never_answered_is_given_up(
    server: FakeMongod, checkpoints: MongoCheckpoints, driver: DriverName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B20 beside the stream: a silent connection does not freeze the checkpoint and the lease behind a ready face."""
    monkeypatch.setattr("brain.knowledge.connect.ANSWER_SECONDS", 0.3)
    server.script.always("update", Silence())
    async with connected(Target(server.uri, DATABASE), driver) as database:
        async with asyncio.timeout(10):
            with pytest.raises(Unreachable):
                await MongoCheckpoints(database).save(CHECKPOINT, LEADERSHIP)
            with pytest.raises(Unreachable):
                await MongoLease(database, SystemClock()).renew(LEADERSHIP)
    server.script.calm()
    await checkpoints.save(CHECKPOINT, LEADERSHIP)


async def test_a_newer_leaders_checkpoint_is_not_moved(checkpoints: MongoCheckpoints, database: Database) -> None:
    """Fenced off by the lease alone, before the newer one has stored anything."""
    await database.update(LEASES, {"_id": LEASE_ID}, {"$set": {"epoch": 2}})
    with pytest.raises(FencedOff):
        await checkpoints.save(CHECKPOINT, LEADERSHIP)
    assert await checkpoints.load() is None


async def test_a_checkpoint_is_one_row_that_a_majority_has_in_its_journal(
    server: FakeMongod, checkpoints: MongoCheckpoints
) -> None:
    """M12: one document is written beside the touch of the lease, and the commit waits for it."""
    await checkpoints.save(CHECKPOINT, LEADERSHIP)
    written = [command for command in server.asked("update") if command["update"] == CHECKPOINTS]
    assert [len(command["updates"]) for command in written] == [1]
    assert [command["writeConcern"] for command in server.asked("commitTransaction")] == [{"w": "majority", "j": True}]


async def test_a_user_who_may_not_write_is_told(server: FakeMongod, checkpoints: MongoCheckpoints) -> None:
    """M13: code 13 is for a person, and is not tried again and again."""
    server.script.always("update", Fail(13))
    with pytest.raises(Refused, match="role"):
        await checkpoints.save(CHECKPOINT, LEADERSHIP)
    assert len(server.asked("update")) == 1


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("update", Fail(112, TRANSIENT)),
        ("update", Fail(189, TRANSIENT)),
        ("find", Fail(246, TRANSIENT)),
        ("update", Cut()),
        ("update", Cut(after=True)),
        ("update", ItemsFail({0: 112})),
        ("insert", ItemsFail({0: 11000})),
        ("update", LateFail(64)),
        ("commitTransaction", Fail(112, TRANSIENT)),
        ("commitTransaction", Fail(251, TRANSIENT)),
        ("commitTransaction", Fail(1)),
        ("commitTransaction", Fail(8)),
        ("update", Fail(1)),
        ("commitTransaction", Cut()),
        ("commitTransaction", Cut(after=True)),
        ("commitTransaction", Fail(91, UNKNOWN)),
        ("commitTransaction", LateFail(64)),
        ("commitTransaction", LateFail(91, UNKNOWN)),
    ],
    ids=str,
)
async def test_a_publication_is_stored_whole_and_once(
    server: FakeMongod, store: MongoKnowledge, command: str, fault: Fail | LateFail | ItemsFail | Cut
) -> None:
    """M3, M12: conflict, reset, unknown commit, write concern: in the end the chunk and its ledger row agree."""
    server.script.on(command, fault)
    outcomes = await again(lambda: store.publish([publication("ollie")], LEADERSHIP))
    assert outcomes == ["applied"]
    assert texts(server) == ["ollie"]
    assert [row["version"] for row in server.store.rows(LEDGER).values()] == [Timestamp(7, 1)]


async def test_a_transaction_that_fails_leaves_nothing(server: FakeMongod, store: MongoKnowledge) -> None:
    """Chunks are written before the ledger; when the ledger's write fails for good, the old text is still whole."""
    await store.publish([publication("old")], LEADERSHIP)
    server.script.on("update", None, None, Fail(2))
    with pytest.raises(Exception, match="code 2 "):
        await store.publish([publication("new", 8)], LEADERSHIP)
    assert texts(server) == ["old"]


async def test_a_writer_that_always_comes_first_is_a_conflict(server: FakeMongod, store: MongoKnowledge) -> None:
    """M12: bounded tries, then Conflict, which the pipeline tries again in its own time."""
    server.script.always("update", Fail(112, TRANSIENT))
    with pytest.raises(Conflict):
        await store.publish([publication("ollie")], LEADERSHIP)
    assert len(server.asked("update")) <= 10


async def test_an_internal_error_is_tried_again_and_pauses(server: FakeMongod, store: MongoKnowledge) -> None:
    """Bounded tries, then an error that pauses readiness and is logged; outside a transaction it ends the worker."""
    server.script.always("commitTransaction", Fail(1))
    with pytest.raises(Conflict, match="code 1 "):
        await store.publish([publication("ollie")], LEADERSHIP)
    assert len(server.asked("commitTransaction")) == TRANSACTION_TRIES
    server.script.calm()
    server.script.on("find", Fail(1))
    with pytest.raises(Fatal):
        await store.states([OLLIE])


async def test_a_connection_that_breaks_in_a_transaction_is_no_conflict(
    server: FakeMongod, store: MongoKnowledge
) -> None:
    """B13: an outage is told as one at the first break, so that readiness hears of it."""
    server.script.always("update", Cut())
    with pytest.raises(Unreachable):
        await store.publish([publication("ollie")], LEADERSHIP)
    assert len(server.asked("update")) <= 2


async def test_something_too_large_is_poison(server: FakeMongod, store: MongoKnowledge) -> None:
    """M8: 10334 outside the stream blames what was written."""
    server.script.always("insert", Fail(10334))  # the chunk and its ledger row are new
    with pytest.raises(Poison):
        await store.publish([publication("ollie")], LEADERSHIP)


async def test_a_read_is_majority_and_not_older_than_its_event(server: FakeMongod, database: Database) -> None:
    """M15: primary, majority, afterClusterTime at least the event's; the version is the answer's time."""
    event = server.write("tricks", {"_id": 1, "name": "Ollie"})
    later = server.tick(5)
    reading = await MongoDocuments(database).read("tricks", [OLLIE], event.at)
    asked = server.asked("find")[-1]
    assert asked["readConcern"]["level"] == "majority"
    assert asked["readConcern"]["afterClusterTime"] >= event.at
    assert asked.get("$readPreference", {"mode": "primary"})["mode"] == "primary"
    assert reading.at == later
    assert [row["name"] for row in reading.documents.values()] == ["Ollie"]


@pytest.mark.parametrize("code", [134, 189, 50, 43])
async def test_a_read_that_must_wait_decides_nothing(server: FakeMongod, database: Database, code: int) -> None:
    """M15: a lagging member that has no majority yet is Retryable, never an empty reading."""
    server.script.on("find", Fail(code), Fail(code))
    with pytest.raises(Retryable):
        await MongoDocuments(database).read("tricks", [OLLIE], server.tick())


async def test_no_right_to_watch(server: FakeMongod, database: Database) -> None:
    """M14: code 13 for $changeStream names both actions, at the start and in the tail."""
    server.script.always("watch", Fail(13))
    with pytest.raises(Refused, match=r"find and changeStream"):
        await check_server(database)
    with pytest.raises(Refused):
        await anext(aiter(MongoChangeStream(database, ["tricks"]).follow(Position(server.tick()))))


async def test_a_standalone_server(driver: DriverName) -> None:
    """M14: a hello without setName: the sentence says what is missing and what to do."""
    with FakeMongod(replica_set=None) as server:
        async with connected(Target(server.uri, DATABASE), driver) as database:
            with pytest.raises(WrongTopology, match=r"replica set.*rs.initiate"):
                await check_server(database)
