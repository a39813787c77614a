"""One seeded life of the worker: a storm of changes and faults, then calm, in which everything must come right."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Final, cast
from unittest.mock import patch

import pytest

from tests.support import virtual
from tests.support.sim_database import Database
from tests.support.sim_oracle import differences, dishonest
from tests.support.sim_ports import (
    SimCheckpoints,
    SimDeadLetters,
    SimDocuments,
    SimLease,
    SimPins,
    SimRequests,
    SimStore,
    SimStream,
)
from tests.support.sim_recorders import CrashingProbe, SimHealth, SimMeter
from tests.support.sim_regenerator import Regenerator
from tests.support.sim_source import PIN, SimClient, SimSource, WordCounter, expected, model_of, target_of
from tests.support.sim_weather import Rates, Weather, dice
from tests.support.sim_writer import Writer
from worker.embedding.batcher import CONTROL, BatchingEmbedder, Limits
from worker.errors import FencedOff, GenerationsChanged
from worker.model import Checkpoint, Leadership, Position, Shaped
from worker.pipeline.around import Around
from worker.pipeline.duties import Papers
from worker.pipeline.leader import Farewell, Leader, Terms, World
from worker.pipeline.shape import T

STORM: Final = 8.0
"""Seconds during which anything may happen."""

STORMS: Final = 2
"""How often, with calm in between."""

PATIENCE: Final = 180.0
"""Seconds of calm within which all must be right: the longest waits of backoff and breaker, and then some."""

SMALL: Final[Mapping[str, Mapping[str, float]]] = {
    "scan": {"PAGE": 2, "AHEAD": 2, "KEEP_EVERY": 0.05},
    "runner": {"BATCH": 2, "TEXTS": 2},
    "duties": {"PAGE": 1},
    "leader": {"CAPACITY": 4},
    "publish": {"MOST_CHUNKS": 2},
}
"""Bounds of the pipeline, by module."""

SOURCES: Final = {name: SimSource(name) for name in ("tricks", "tips")}


async def _in_place(work: Callable[[], T]) -> T:
    return work()


@dataclass(slots=True)
class Life:
    """One process from its start to its end."""

    leader: Leader
    embedders: Sequence[BatchingEmbedder]
    clients: Sequence[SimClient]
    meter: SimMeter
    health: SimHealth
    probe: CrashingProbe
    stop: asyncio.Event
    task: "asyncio.Task[Farewell]"

    async def close(self) -> None:
        """Give up what its embedders have on their way."""
        for embedder in self.embedders:
            await embedder.close()

    def conserved(self) -> None:
        """Every change that came in has its outcome, or is still inside."""
        inside = self.leader._coalescer.unsettled  # pyright: ignore[reportPrivateUsage] - the third side of the sum
        assert self.meter.came_in == self.meter.outcomes.total() + inside, (self.meter, inside)


@dataclass(slots=True)
class Simulation:
    """One seed."""

    seed: int
    rng: Random = field(init=False)
    weather: Weather = field(init=False)
    db: Database = field(init=False)
    writer: Writer = field(init=False)
    regenerator: Regenerator = field(init=False)
    longest: float = field(init=False)
    clock: virtual.VirtualClock = field(default_factory=virtual.VirtualClock)

    def __post_init__(self) -> None:
        self.rng = dice(f"{self.seed}/driver")
        self.longest = self.rng.choice((0.3, 2.0, 8.0))  # seconds until something happens to the process
        climate = dice(f"{self.seed}/climate")
        self.weather = Weather(dice(f"{self.seed}/weather"), Rates.draw(climate))
        self.db = Database(PIN, {name: {} for name in SOURCES}, self.clock.monotonic, checkpointing=self._judge)
        self.writer = Writer(self.db, dice(f"{self.seed}/writer"))
        self.regenerator = Regenerator(self.db, dice(f"{self.seed}/generations"))

    async def run(self) -> None:
        """Storm, calm, and a second look at it."""
        self.writer.fill()
        life = self.begin()
        for _ in range(STORMS):
            self.weather.calm = False
            until = self.clock.monotonic() + STORM
            writing = asyncio.create_task(self.writer.write(until, self.rng.choice((0.05, 0.5, 3.0))))
            changing = asyncio.create_task(self.regenerator.change(until))
            while self.clock.monotonic() < until:
                life = await self.next(life)
            await asyncio.gather(writing, changing)
            self.weather.calm = True
            life = await self.come_right(life)
            if self.regenerator.switch():  # all generations are right: it may be searched from now on
                life = await self.come_right(life)
        await self.stop(life)
        await self.again()

    def _judge(self, checkpoint: Checkpoint) -> None:
        """At every stored position: it may not pass what is not durable."""
        found = dishonest(self.db, SOURCES, checkpoint, self.clock.now())
        assert not found, found

    def begin(self) -> Life:
        """Start a process that leads from now on."""
        self.db.epoch += 1
        meter, health, probe = SimMeter(), SimHealth(), CrashingProbe(self.weather)
        around = Around(self.clock, meter, health, probe, dice(f"{self.seed}/{self.db.epoch}"))
        live = self.db.generations.live
        clients = [SimClient(self.weather, model_of(pin)) for pin in live]
        limits = Limits(texts=4, concurrency=2)
        embedders = [BatchingEmbedder(client, WordCounter(), limits, around) for client in clients]
        papers = Papers(
            SimStore(self.db, self.weather),
            SimCheckpoints(self.db, self.weather),
            SimDeadLetters(self.db, self.weather),
            SimLease(self.db, self.weather),
            SimRequests(self.db, self.weather),
            SimPins(self.db, self.weather),
        )
        stream, documents = SimStream(self.db, self.weather), SimDocuments(self.db, self.weather)
        beside = dict(zip(live[1:], embedders[1:], strict=True))
        world = World(stream, documents, papers, embedders[0], beside)
        target, *others = (target_of(pin, SOURCES) for pin in live)
        terms = Terms(SOURCES, target, _in_place, rescan_every=timedelta(hours=1), beside=tuple(others))
        leader = Leader(world, terms, Leadership(self.db.epoch), around)
        stop = asyncio.Event()
        task = asyncio.create_task(leader.serve(stop), name=f"leader-{self.db.epoch}")
        return Life(leader, embedders, clients, meter, health, probe, stop, task)

    async def next(self, life: Life) -> Life:
        """Let it live for a while, and end it in one way or another, or not."""
        dead = asyncio.create_task(life.probe.dead.wait())
        await asyncio.wait(
            {dead, life.task}, timeout=self.rng.uniform(0.0, self.longest), return_when=asyncio.FIRST_COMPLETED
        )
        dead.cancel()
        if life.task.done():
            return await self.regenerated(life)
        life.conserved()
        fate = "crash" if life.probe.dead.is_set() else self.rng.choice(("live", "live", "crash", "stop", "overtaken"))
        match fate:
            case "crash":
                await self.kill(life)
            case "stop":
                await self.stop(life)
            case "overtaken":
                return await self.overtake(life)
            case _:
                return life
        return self.begin()

    async def regenerated(self, life: Life) -> Life:
        """Begin again with other generations: nothing else ends a leader that nobody stops."""
        with pytest.raises(GenerationsChanged):
            life.task.result()
        life.conserved()
        await life.close()
        return self.begin()

    async def kill(self, life: Life) -> None:
        """End a process where it is."""
        life.task.cancel()
        await asyncio.wait({life.task})
        if not life.task.cancelled():
            assert isinstance(life.task.exception(), GenerationsChanged), life.task.exception()
        await life.close()

    async def stop(self, life: Life) -> None:
        """Ask it to stop; one that dies at a place, or takes too long, is killed."""
        life.stop.set()
        dead = asyncio.create_task(life.probe.dead.wait())
        await asyncio.wait({dead, life.task}, timeout=15.0, return_when=asyncio.FIRST_COMPLETED)
        dead.cancel()
        if not life.task.done():
            assert not self.weather.calm, "in calm a stop takes less than its drain"
            await self.kill(life)
            return
        with suppress(GenerationsChanged):  # just before the stop
            life.task.result()
        life.conserved()
        await life.close()

    async def overtake(self, life: Life) -> Life:
        """Another process takes the lease while this one still works: it must find out, and end."""
        other = self.begin()
        await asyncio.wait({life.task}, timeout=self.rng.uniform(0.0, 5.0))
        if life.task.done():
            try:
                life.task.result()
            except* (FencedOff, GenerationsChanged):
                pass
            await life.close()
        else:
            await self.kill(life)
        return other

    async def come_right(self, life: Life) -> Life:
        """Wait until the stored state is f(documents), and see that it stays so."""
        if life.probe.dead.is_set():
            await self.kill(life)
            life = self.begin()
        deadline = self.clock.monotonic() + PATIENCE
        quiet = 0
        while quiet < 8:
            await asyncio.sleep(1.0)
            if life.task.done():
                life = await self.regenerated(life)
            life.conserved()
            found = differences(self.db, SOURCES, self.clock.now())
            found += [f"request {name} is not done" for name in self.db.requests.keys() - self.db.results.keys()]
            quiet = 0 if found or self._something_ends() else quiet + 1
            assert self.clock.monotonic() < deadline, found
        assert not life.health.reasons, life.health.reasons
        return life

    def _something_ends(self) -> bool:
        documents = (document for source in self.db.documents.values() for document in source.values())
        ends = (cast("datetime | None", document["ends"]) for document in documents)
        return any(end is not None and end > self.clock.now() for end in ends)

    async def again(self) -> None:
        """A new start that sees all of it again, events and documents, finds nothing to do and embeds nothing."""
        had_letters = bool(self.db.letters)
        self.db.scans.clear()
        if self.db.trimmed == 0 and self.db.history and self.db.checkpoint is not None:
            self.db.checkpoint = Checkpoint(Position(self.db.history[0][0]), self.clock.now())
        life = self.begin()
        life = await self.come_right(life)
        sent = [text for client in life.clients for text in client.sent]
        controls = {CONTROL} if had_letters else set[str]()  # asks whether a text that is refused again is to blame
        unstored = [text for text in sent if text not in controls and not self._of_a_dead_letter(text)]
        assert not unstored, unstored
        # A dead letter whose end has passed meanwhile is found by the scan, and what was stored of it removed.
        quiet = {"kept", "removed"} if had_letters else {"kept"}
        assert not {name: n for name, n in life.meter.actions.items() if n and name not in quiet}, life.meter.actions
        await self.stop(life)

    def _of_a_dead_letter(self, text: str) -> bool:
        """A document that cannot be published whole is not published at all, so its good texts are not there either."""
        now = self.clock.now()
        shaped = (expected(self.db.documents[key.source], key, SOURCES[key.source], now) for key in self.db.letters)
        return any(part.text == text for one in shaped if isinstance(one, Shaped) for part in one.parts)


def simulate(seed: int) -> None:
    """Run one seed; every second one with bounds so small that a few documents reach them."""

    async def main() -> None:
        await Simulation(seed).run()

    with ExitStack() as small:
        if seed % 2:
            for module, bounds in SMALL.items():
                for name, bound in bounds.items():
                    small.enter_context(patch(f"worker.pipeline.{module}.{name}", bound))
        virtual.run(main)
