"""The contract of `worker.ports.Lease`, over both drivers: who may write, decided by the database alone."""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymongo.asynchronous.database import AsyncDatabase

from worker.errors import FencedOff, LeaseGone
from worker.model import Leadership
from worker.mongo.driver import Database
from worker.mongo.fence import fence
from worker.mongo.lease import TTL, MongoLease
from worker.mongo.transactions import Session
from worker.process import start_mark

Backend = AsyncDatabase[dict[str, Any]]


class HandClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> datetime:
        """A fixed wall time: nothing here may depend on it."""
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        """What the test says."""
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Move on."""
        self.seconds += seconds


@pytest.fixture
def clock() -> HandClock:
    """The waiting process's clock."""
    return HandClock()


async def test_one_leads_and_the_other_waits(database: Database, other: Database, clock: HandClock) -> None:
    """The second one gets nothing while the first one beats, however long that is."""
    first, second = MongoLease(database, clock), MongoLease(other, clock)
    leadership = await first.acquire()
    assert leadership is not None
    for _ in range(8):
        assert await second.acquire() is None
        clock.seconds += TTL / 2
        await first.renew(leadership)
    holder = await second.holder()
    assert holder is not None
    assert (holder["pid"], holder["epoch"]) == (os.getpid(), leadership.epoch)


async def test_a_silent_holder_of_another_host_does_not_lead(
    database: Database, other: Database, backend: Backend, clock: HandClock
) -> None:
    """Seen from a command that looks once: the database's clock stamps each beat, and says how old the last one is."""
    first, second = MongoLease(database, clock), MongoLease(other, clock)
    leadership = await first.acquire()
    assert leadership is not None
    await first.renew(leadership)
    far = {"holder.host": "elsewhere", "holder.space": "elsewhere/1"}
    await backend["freshness_leases"].update_one({"_id": "worker"}, {"$set": far})
    holder = await second.holder()
    assert holder is not None
    assert holder["host"] == "elsewhere"
    row = await backend["freshness_leases"].find_one({"_id": "worker"})
    assert row is not None
    silent = {"beatAt": row["beatAt"] - timedelta(seconds=TTL)}
    await backend["freshness_leases"].update_one({"_id": "worker"}, {"$set": silent})
    assert await second.holder() is None
    await first.renew(leadership)
    assert await second.holder() == holder


async def test_a_silent_leader_is_replaced_and_fenced_off(
    database: Database, other: Database, clock: HandClock
) -> None:
    """After the TTL on the waiting one's own clock; the epoch rises; the former leader hears of it at its next beat."""
    first, second = MongoLease(database, clock), MongoLease(other, clock)
    old = await first.acquire()
    assert old is not None
    assert await second.acquire() is None
    clock.seconds += TTL - 0.1
    assert await second.acquire() is None
    clock.seconds += 0.2
    new = await second.acquire()
    assert new is not None
    assert new.epoch > old.epoch
    with pytest.raises(FencedOff):
        await first.renew(old)
    await first.release(old)
    await second.renew(new)


async def test_a_released_lease_is_free_at_once(database: Database, other: Database, clock: HandClock) -> None:
    """No waiting after an orderly stop, and the epoch still rises."""
    first, second = MongoLease(database, clock), MongoLease(other, clock)
    old = await first.acquire()
    assert old is not None
    await first.release(old)
    assert await second.holder() is None
    with pytest.raises(FencedOff):
        await first.renew(old)
    new = await second.acquire()
    assert new is not None
    assert new.epoch > old.epoch


async def test_a_lease_that_went_with_its_database(
    database: Database, other: Database, backend: Backend, clock: HandClock
) -> None:
    """Nobody holds it, which its holder is told by type; the next one begins above it, so the former stays fenced."""
    first, second = MongoLease(database, clock), MongoLease(other, clock)

    async def write(leadership: Leadership) -> None:
        await database.transaction(lambda session: fence(database, leadership, session))

    for _ in range(3):
        old = await first.acquire()
        assert old is not None
        await backend.client.drop_database(backend.name)
        for refused in (first.renew(old), write(old)):
            with pytest.raises(LeaseGone):
                await refused
        new = await second.acquire()
        assert new is not None
        assert new.epoch > old.epoch
        for refused in (first.renew(old), write(old)):
            with pytest.raises(FencedOff) as caught:
                await refused
            assert not isinstance(caught.value, LeaseGone)
        await second.release(new)


async def test_a_process_of_this_host_that_is_gone_is_replaced_at_once(
    database: Database, backend: Backend, clock: HandClock
) -> None:
    """A restart after kill -9 does not wait; neither does a pid that another process has now."""
    lease = MongoLease(database, clock)
    old = await lease.acquire()
    assert old is not None
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    pid, mark = child.pid, start_mark(child.pid)
    await child.wait()
    gone = {"holder.pid": pid, "holder.started": mark}
    await backend["freshness_leases"].update_one({"_id": "worker"}, {"$set": gone})
    assert await lease.holder() is None
    second = await lease.acquire()
    assert second is not None
    reused = {"holder.pid": os.getpid(), "holder.started": "0"}
    await backend["freshness_leases"].update_one({"_id": "worker"}, {"$set": reused})
    third = await lease.acquire()
    assert third is not None
    assert old.epoch < second.epoch < third.epoch


async def test_a_process_of_another_host_is_never_looked_for_here(
    database: Database, backend: Backend, clock: HandClock
) -> None:
    """Its pid means nothing on this host: only its silence counts."""
    lease = MongoLease(database, clock)
    assert await lease.acquire() is not None
    elsewhere = {"holder.space": "elsewhere/boot/pid:[1]", "holder.pid": 1, "holder.started": "0"}
    await backend["freshness_leases"].update_one({"_id": "worker"}, {"$set": elsewhere})
    assert await lease.acquire() is None
    clock.seconds += TTL
    assert await lease.acquire() is not None


async def test_of_many_racers_one_wins(database: Database, clock: HandClock) -> None:
    """First insert and takeover alike: exactly one leadership, round after round, with rising epochs."""
    epoch = 0
    for _ in range(5):
        racers = [MongoLease(database, clock) for _ in range(6)]
        won = [one for one in await asyncio.gather(*(racer.acquire() for racer in racers)) if one is not None]
        assert len(won) == 1
        assert won[0].epoch > epoch
        epoch = won[0].epoch
        await racers[0].release(won[0])


async def test_a_transaction_left_open_does_not_delay_the_next_leader(
    database: Database, other: Database, clock: HandClock
) -> None:
    """It has touched the lease, and its process is gone: it is aborted, not waited for; if not gone, it is fenced."""
    first, second = MongoLease(database, clock), MongoLease(other, clock)
    leadership = await first.acquire()
    assert leadership is not None
    open_now, go_on = asyncio.Event(), asyncio.Event()

    async def body(session: Session) -> None:
        await fence(database, leadership, session)
        open_now.set()
        await go_on.wait()

    left_open = asyncio.create_task(database.transaction(body))
    await open_now.wait()
    assert await second.acquire() is None
    clock.seconds += TTL
    async with asyncio.timeout(30):  # a bound, below the minute after which a server gives such a transaction up
        assert await second.acquire() is not None
    go_on.set()
    with pytest.raises(FencedOff):
        await left_open
