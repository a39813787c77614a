"""The leader as a whole: how it begins and how it ends."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.support import virtual
from tests.support.sim_ports import SimCheckpoints, SimLease, SimPins
from tests.support.sim_stage import FAIR, Stage, document
from tests.support.sim_weather import Weather, dice
from worker.errors import FencedOff, GenerationsChanged, LeaseGone, NothingPinned, Unreachable
from worker.generations import Generations
from worker.model import Checkpoint, Leadership, Scan
from worker.pipeline.leader import LAST_WORDS
from worker.pipeline.shape import T


class Lossy(Weather):
    """Fair, until writes stop to arrive."""

    def __init__(self) -> None:
        super().__init__(dice("lossy"), FAIR)
        self.refuses: Callable[[], bool] = lambda: False

    async def write(self, effect: Callable[[], T]) -> T:
        """Fail, or take effect."""
        if self.refuses():
            raise self.fault()
        return await super().write(effect)


class Dropped(SimLease):
    """A lease whose database is dropped at some time."""

    dropped = False

    async def renew(self, leadership: Leadership) -> None:
        """As long as it is there."""
        if self.dropped:
            message = "the lease is gone"
            raise LeaseGone(message)
        await super().renew(leadership)


class Unpinned(SimPins):
    """No generation lives."""

    async def load(self) -> Generations:
        """There is none."""
        message = "nothing is pinned"
        raise NothingPinned(message)


class Late(SimCheckpoints):
    """Stores no position for a while."""

    def __init__(self, stage: Stage, seconds: float) -> None:
        super().__init__(stage.db, stage.weather)
        self._clock = stage.clock
        self._until = stage.clock.monotonic() + seconds

    async def save(self, checkpoint: Checkpoint, leadership: Leadership) -> None:
        """Not yet, or store it."""
        if self._clock.monotonic() < self._until:
            message = "not yet"
            raise Unreachable(message)
        await super().save(checkpoint, leadership)


def test_no_scan_keeps_a_place_before_the_first_position_is_stored() -> None:
    """Else a crash goes on behind changes that nobody saw: the place is durable, and the next position a later one."""

    async def main() -> None:
        stage = Stage()
        stage.papers = replace(stage.papers, checkpoints=Late(stage, 20))
        stage.world = replace(stage.world, papers=stage.papers)
        for number in range(3):
            stage.put(document(number, "Ollie", str(number)), told=False)
        serving = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(10)
        assert stage.db.scans == {"tricks": Scan("tricks", "first", stage.db.scans["tricks"].shape, done=False)}
        stage.put(document(0, "Ollie", "edited"))
        serving.cancel()
        await asyncio.wait({serving})
        serving = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(120)
        assert stage.wrong() == []
        serving.cancel()
        await asyncio.wait({serving})

    virtual.run(main)


def test_without_a_position_everything_is_scanned_again() -> None:
    """Whoever removed it: nobody knows since when changes were missed, so scans that were done count no longer."""

    async def main() -> None:
        stage = Stage()
        stage.put(document(1, "Ollie", "pop"), told=False)
        stage.db.scans["tricks"] = Scan("tricks", "first", "any", done=True, finished_at=stage.now())
        stop = asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        assert stage.wrong() == []
        stop.set()
        await serving

    virtual.run(main)


def test_a_stop_finishes_what_is_in_hand_and_stores_the_last_position() -> None:
    """What was told before the stop is stored, and the position is behind it: the next start reads none of it again."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        stage.put(document(1, "Ollie", "pop"))
        await asyncio.sleep(0.1)
        stop.set()
        await serving
        assert stage.texts(1) == ["Ollie: pop"]
        assert stage.db.checkpoint is not None
        assert stage.db.place(stage.db.checkpoint.position) == len(stage.db.history)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtual.run(main)


def test_a_stop_does_not_wait_for_a_scan() -> None:
    """What a scan has put out and nobody has begun is left: its place is kept, and what was told is finished."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        for number in range(2000):
            stage.put(document(number, "Ollie", str(number)), told=False)
        stage.client.seconds = 2.0
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(15)
        stage.put(document(1999, "Ollie", "edited"))
        await asyncio.sleep(0.1)
        began = stage.clock.monotonic()
        stop.set()
        farewell = await serving
        assert stage.clock.monotonic() - began < 8
        assert stage.texts(1999) == ["Ollie: edited"]
        assert 500 < farewell.left < 1500
        assert farewell.stored
        assert stage.meter.came_in == stage.meter.outcomes.total() + farewell.left

    virtual.run(main)


def test_a_stop_at_the_beginning_is_prompt() -> None:
    """The database is not there when the leadership begins: nothing is in hand, so nothing is waited for."""

    async def main() -> None:
        stage, stop = Stage(weather=Weather(dice("dead"), replace(FAIR, read=1.0))), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(60)
        assert "database" in stage.health.reasons
        stop.set()
        await asyncio.sleep(0.5)
        assert serving.done()
        assert stage.health.reasons == {}

    virtual.run(main)


def test_one_that_is_fenced_off_ends_and_leaves_no_task() -> None:
    """Within the time between two renewals, whatever it was doing."""

    async def main() -> None:
        stage = Stage()
        serving = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(5)
        stage.db.epoch = 2
        await asyncio.wait({serving}, timeout=4)
        with pytest.raises(ExceptionGroup) as caught:
            serving.result()
        assert caught.group_contains(FencedOff)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert stage.health.reasons == {}

    virtual.run(main)


def test_one_whose_lease_is_gone_leaves_nothing_in_hand() -> None:
    """The process goes on with another leader, and its figures with it: what had no outcome has one now."""

    async def main() -> None:
        stage = Stage()
        lease = Dropped(stage.db, stage.weather)
        stage.world = replace(stage.world, papers=replace(stage.papers, lease=lease))
        serving = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(5)
        for number in range(3):
            stage.put(document(number, "Ollie", str(number)))
        await asyncio.sleep(0.1)
        assert (stage.meter.came_in, stage.meter.outcomes.total()) == (3, 0)
        lease.dropped = True
        await asyncio.wait({serving}, timeout=0.1)
        with pytest.raises(ExceptionGroup) as caught:
            serving.result()
        assert caught.group_contains(LeaseGone)
        assert stage.meter.outcomes == {"superseded": 3}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with patch("worker.pipeline.duties.RENEW_EVERY", 0.01):
        virtual.run(main)


def test_one_that_finds_nothing_pinned_begins_again() -> None:
    """The database was dropped while it stood by: the pin is made where a leader is put together."""

    async def main() -> None:
        stage = Stage()
        papers = replace(stage.papers, pins=Unpinned(stage.db, stage.weather))
        stage.world = replace(stage.world, papers=papers)
        with pytest.raises(GenerationsChanged):
            await stage.leader().serve(asyncio.Event())

    virtual.run(main)


def test_a_drain_is_bounded() -> None:
    """While the database takes no writes a stop ends the pumps after its time, and what is left is told again."""

    async def main() -> None:
        weather = Lossy()
        stage, stop = Stage(weather=weather), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        assert stage.db.checkpoint is not None
        before = stage.db.checkpoint.position
        weather.refuses = lambda: True
        stage.put(document(1, "Ollie", "pop"))
        await asyncio.sleep(1)
        stop.set()
        began = stage.clock.monotonic()
        farewell = await serving
        assert stage.clock.monotonic() - began <= 10 + LAST_WORDS + 1
        assert (farewell.left, farewell.stored) == (1, True)  # the position has not moved, so it is stored already
        assert stage.db.checkpoint.position.at == before.at
        weather.refuses = lambda: False
        again = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(5)
        assert stage.texts(1) == ["Ollie: pop"]
        again.cancel()
        await asyncio.wait({again})

    virtual.run(main)
