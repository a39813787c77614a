"""An hour without embedder at 50 changes a second, on the virtual clock: bounded, loud, then all comes right."""

import asyncio
import time
import tracemalloc
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import pytest

from tests.support import virtual
from tests.support.crashes import Record, show
from tests.support.sim_oracle import differences, dishonest
from tests.support.sim_ports import SimStore
from tests.support.sim_source import SimSource, WordCounter
from tests.support.sim_stage import FAIR, TRICKS, Stage, document
from tests.support.sim_weather import Weather, dice
from worker.embedding.batcher import BatchingEmbedder, Limits
from worker.model import Checkpoint, DocKey, DocumentChanged
from worker.observe.health import HealthBoard
from worker.pipeline.leader import CAPACITY, Leader

pytestmark = pytest.mark.slow

HOUR: Final = 3600
A_SECOND: Final = 50
MINUTE: Final = 60
WARM: Final = 5
"""Minutes after which the worker holds all that it will ever hold: it is full after 100 seconds."""

CEILING_KB: Final = 8_000
"""What the worker's own code may hold at any minute (2 KB for each of the changes it may have in hand)."""

GROWTH_KB: Final = 200
"""And how much more at the end of the hour than after the first minutes: what is flat grows by a few objects."""

PATIENCE: Final = 600
"""Virtual seconds for what waited an hour: 180,000 changes, an answer of the database every two milliseconds."""

SOURCES: Final[Mapping[str, SimSource]] = {"tricks": TRICKS}
OURS: Final = tracemalloc.Filter(inclusive=True, filename_pattern="*/worker/*")


def held_kb() -> float:
    """What code of the worker has allocated and not given back since the outage began."""
    taken = tracemalloc.take_snapshot().filter_traces([OURS])
    return sum(one.size for one in taken.statistics("filename")) / 1024


class Plain(SimStore):
    """Of documents that name no others and do not end: an hour of looking through all of them is saved."""

    async def owing(self, sources: Sequence[str], limit: int) -> Sequence[DocKey]:
        """None."""
        return ()

    async def expired(self, now: datetime, sources: Sequence[str], limit: int) -> Sequence[DocKey]:
        """None."""
        return ()


@dataclass(slots=True)
class Outage:
    """A leader over so many documents, whose embedder may go away; everything else works."""

    documents: int
    stage: Stage = field(init=False)
    board: HealthBoard = field(init=False)
    leader: Leader = field(init=False)
    keys: dict[int, DocKey] = field(init=False)
    turn: int = 0
    held: list[float] = field(default_factory=list[float])
    ages: list[float] = field(default_factory=list[float])
    full: int = 0

    def __post_init__(self) -> None:
        stage = self.stage = Stage(weather=Weather(dice("outage"), replace(FAIR, embed=1.0)))
        stage.weather.calm = True
        self.board = HealthBoard(stage.clock)
        stage.around = replace(stage.around, health=self.board)
        stage.embedder = BatchingEmbedder(stage.client, WordCounter(), Limits(), stage.around)
        stage.papers = replace(stage.papers, store=Plain(stage.db, stage.weather))
        stage.world = replace(stage.world, papers=stage.papers, embedder=stage.embedder)
        stage.db.checkpointing = self._judge
        self.leader = stage.leader()
        told = [stage.put(document(number, "ollie", f"says {number}"), told=False) for number in range(self.documents)]
        self.keys = dict(enumerate(told))

    def _judge(self, checkpoint: Checkpoint) -> None:
        if self.turn:  # while nothing waits, every second's checkpoint says the same
            found = dishonest(self.stage.db, SOURCES, checkpoint, self.stage.now())
            assert not found, found[:3]

    @property
    def unsettled(self) -> int:
        """Changes in hand."""
        return self.leader._coalescer.unsettled  # pyright: ignore[reportPrivateUsage] - no port tells it

    def wrong(self) -> list[str]:
        """What differs from f(documents)."""
        return differences(self.stage.db, SOURCES, self.stage.now())

    async def until_right(self, patience: int) -> float:
        """Wait for readiness and convergence; how many seconds that took."""
        began = self.stage.clock.monotonic()
        while not self.board.snapshot().ready or self.unsettled or self.wrong():
            await asyncio.sleep(1)
            assert self.stage.clock.monotonic() - began < patience, self.wrong()[:3]
        return self.stage.clock.monotonic() - began

    async def last(self) -> None:
        """Let the embedder be away for an hour in which people go on to write."""
        self.stage.weather.calm = False
        tracemalloc.start()
        for second in range(HOUR):
            for _ in range(A_SECOND):
                self._edit()
            await asyncio.sleep(1)
            self.full = max(self.full, self.unsettled)
            assert self.unsettled <= CAPACITY
            if second % MINUTE == 0 and second:
                self._look(second)
        tracemalloc.stop()
        self.stage.weather.calm = True

    def _edit(self) -> None:
        """Change one document; its key is one that is there, so that the history does not count as the worker's."""
        self.turn += 1
        key = self.keys[self.turn % self.documents]
        self.stage.db.documents["tricks"][key] = document(self.turn % self.documents, "ollie", f"says turn {self.turn}")
        self.stage.db.record(DocumentChanged(key, self.stage.now()))

    def _look(self, second: int) -> None:
        """Every minute: not ready and says why, the chunks are as old as the outage, and every change is accounted."""
        meter = self.stage.meter
        assert meter.came_in == meter.outcomes.total() + self.unsettled
        told = self.board.snapshot()
        assert not told.ready
        assert any("paused (embedding)" in reason for reason in told.reasons), told
        self.ages.append(self.board.watermark_age())
        assert second - 5 < self.ages[-1] < second + 5
        if second in {WARM * MINUTE, HOUR // 2, HOUR - MINUTE}:
            self.held.append(held_kb())


@asynccontextmanager
async def serving(outage: Outage) -> AsyncGenerator[None]:
    """Its leader at work; stopped at the end, and drained."""
    stop = asyncio.Event()
    task = asyncio.create_task(outage.leader.serve(stop))
    yield
    stop.set()
    await task
    await outage.stage.embedder.close()


def test_an_hour_without_embedder(record_property: Record) -> None:
    """180,000 changes, of more documents than the worker takes in hand: none is lost, memory is flat."""
    documents = 8_000
    began = time.monotonic()

    async def main() -> tuple[Outage, float]:
        outage = Outage(documents)
        async with serving(outage):
            await outage.until_right(PATIENCE)
            await outage.last()
            took = await outage.until_right(PATIENCE)
        meter = outage.stage.meter
        assert outage.turn == HOUR * A_SECOND
        assert meter.came_in == meter.outcomes.total() == outage.turn + documents
        return outage, took

    outage, took = virtual.run(main)
    assert outage.full == CAPACITY
    assert outage.ages == sorted(outage.ages)
    assert max(outage.held) < CEILING_KB, outage.held
    assert outage.held[-1] - outage.held[0] < GROWTH_KB, outage.held
    held = ", ".join(f"{kb:.0f}" for kb in outage.held)
    show(
        record_property,
        f"hour      {outage.turn} changes of {documents} documents, at most {outage.full} in hand, worker's own memory "
        f"{held} kB (5, 30, 59 min), clean {took:.0f} virtual s after, {time.monotonic() - began:.1f} s",
    )
