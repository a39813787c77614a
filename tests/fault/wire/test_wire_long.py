"""What a stream costs that breaks again and again, and a database that stays away: nothing that grows."""

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.support.crashes import Record, show
from tests.support.fake_mongod import Fail, FakeMongod
from tests.support.following import until
from tests.support.wire_world import TRICKS, HurriedClock, document, leading
from worker.model import Change, Position
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.driver import Database
from worker.observe.health import HealthBoard
from worker.observe.metrics import PrometheusMeter
from worker.pipeline.around import Around, NoProbe
from worker.pipeline.intake import Tail
from worker.pipeline.together import end

REOPENED: Final = 1000
WARM: Final = 200
"""Reopenings after which pools, caches and code paths are as large as they will be."""

AT_ONCE: Final = 100_000.0  # how many times faster the backoff's waits go by
GROWTH: Final = 500
"""Objects that 800 more may leave behind: less than one each."""


@dataclass(slots=True)
class Inlet:
    """Implements `worker.pipeline.intake.Inlet`: remembers what changed."""

    seen: list[object] = field(default_factory=list[object])

    async def changed(self, change: Change, position: Position) -> None:
        """Note."""
        self.seen.append(change.key.raw)

    def passed(self, position: Position) -> None:
        """Nothing."""

    async def rescan(self, sources: Sequence[str], reason: str) -> None:
        """Never, here."""
        message = f"{sources} are wanted for {reason}"
        raise AssertionError(message)


@dataclass(frozen=True, slots=True)
class Held:
    """What this process holds now: tasks, file descriptors, and objects that the garbage collector knows."""

    tasks: int
    descriptors: int
    objects: int

    @classmethod
    def now(cls, server: FakeMongod) -> "Held":
        """Count, without what the fake remembers."""
        server.seen.clear()
        server.cursors.clear()
        gc.collect()
        return cls(len(asyncio.all_tasks()), len(list(Path("/proc/self/fd").iterdir())), len(gc.get_objects()))


async def test_a_thousand_reconnects_leave_nothing_behind(
    server: FakeMongod, database: Database, record_property: Record
) -> None:
    """K8: each breaks at its first step; no task, no descriptor, no object is left of them, and nothing is missed."""
    clock, meter, inlet = HurriedClock(AT_ONCE), PrometheusMeter([TRICKS]), Inlet()
    around = Around(clock, meter, HealthBoard(clock), NoProbe(), Random(1))  # noqa: S311 - jitter
    tail = Tail(MongoChangeStream(database, [TRICKS]), [TRICKS], inlet, around)
    server.script.always("getMore", Fail(43))
    server.script.on("watch", *[None, Fail(43)] * REOPENED * 2)  # the driver's own resumption fails, our opening works

    def reopened() -> int:
        text = meter.render().decode().splitlines()
        return int(sum(float(line.split()[-1]) for line in text if line.startswith("freshness_stream_reopens_total")))

    following = asyncio.create_task(tail.follow(Position(server.tick())))
    try:
        await until(lambda: following.done() or reopened() >= WARM, "the first reopenings")
        before = Held.now(server)
        for turn in range(1, 9):
            server.write(TRICKS, document(turn, "t", "says"))
            await until(lambda: following.done() or reopened() >= WARM + turn * 100, "more of them")  # noqa: B023 - asked before `turn` moves
        after = Held.now(server)
        server.script.calm()
        await until(lambda: following.done() or inlet.seen == list(range(1, 9)), "every change once and in order")
    finally:
        await end([following])  # once is not enough: see `worker.pipeline.together`
    assert following.cancelled()
    assert reopened() >= REOPENED
    assert after.tasks <= before.tasks + 1
    assert after.descriptors <= before.descriptors + 1
    assert after.objects - before.objects < GROWTH
    show(record_property, f"K8        {reopened()} reconnects: {before} after {WARM}, {after} at the end")


async def test_an_event_that_is_too_large_costs_one_reopening(server: FakeMongod, database: Database) -> None:
    """B04: 10334 for the event of a large edit, then a small edit: one reopening, one scan, both are stored."""
    async with leading(server, database) as life:
        for number in (1, 2):
            server.write(TRICKS, document(number, "t", f"old {number}"))
        await life.until_stored("t: old 1", "t: old 2")
        server.script.on("getMore", Fail(10334))
        server.write(TRICKS, document(1, "t", "large"))
        await until(lambda: life.figure("stream_reopens_total") > 0, "the reopening")
        server.write(TRICKS, document(2, "t", "small"))
        await life.until_stored("t: large", "t: small")
        server.write(TRICKS, document(3, "t", "later"))
        await life.until_stored("t: large", "t: small", "t: later")
        assert life.figure("stream_reopens_total") == 1
        assert life.figure('resyncs_total{reason="history_lost"}') == 1
        assert life.figure("dead_letters") == 0


async def test_a_database_that_stays_away_costs_no_memory(
    server: FakeMongod, database: Database, record_property: Record
) -> None:
    """M16: fifty minutes of refused connections, hurried: what it holds after ten is what it holds at the end."""
    async with leading(server, database, hurry=600) as life:
        server.write(TRICKS, document(1, "t", "a"))
        await life.until_stored("t: a")
        server.down = True
        server.disconnect()
        began = life.clock.monotonic()
        await until(lambda: life.clock.monotonic() - began > 600, "ten minutes")
        before = Held.now(server)
        await until(lambda: life.clock.monotonic() - began > 3000, "forty more")
        after = Held.now(server)
        server.write(TRICKS, document(2, "t", "b"))
        server.down = False
        await life.until_stored("t: a", "t: b")
    assert after.tasks <= before.tasks + 3  # one that is just being tried, or is not
    assert after.descriptors <= before.descriptors + 3
    assert after.objects - before.objects < GROWTH
    show(record_property, f"M16       {before} after ten minutes away, {after} after fifty")
