"""Wall clocks that are wrong or jump (K1): on the virtual clock, with a host whose own wall does as it likes.

The database's clock is right here; everything is told by it.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import pytest

from tests.support import virtual
from tests.support.sim_oracle import differences
from tests.support.sim_recorders import SimHealth, SimMeter
from tests.support.sim_stage import TRICKS, Stage, document
from tests.support.virtual import VirtualClock
from worker.model import DocumentChanged, Outcome

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)


class OddClock(VirtualClock):
    """A clock whose wall is off by what the test says; monotonic time goes on as always."""

    def __init__(self) -> None:
        self.off: Callable[[float], timedelta] = lambda _seconds: timedelta()

    def now(self) -> datetime:
        """The wall time of this host."""
        return super().now() + self.off(self.monotonic())


class Lags(SimMeter):
    """Keeps the lags."""

    def __init__(self) -> None:
        super().__init__()
        self.lags: list[float] = []

    def settled(self, source: str, outcome: Outcome, lag: float | None) -> None:
        """Keep."""
        super().settled(source, outcome, lag)
        if lag is not None:
            self.lags.append(lag)


class Waits(SimHealth):
    """Keeps how long the oldest change has waited at most."""

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0.0

    def watermark(self, oldest_open: float | None) -> None:
        """Keep."""
        if oldest_open is not None:
            self.longest = max(self.longest, VirtualClock().monotonic() - oldest_open)


def always(off: timedelta) -> Callable[[float], timedelta]:
    """Off by that."""
    return lambda _seconds: off


def strobe(seconds: float) -> timedelta:
    """200 s ahead and behind by turns, each second."""
    return timedelta(seconds=200 if int(seconds) % 2 else -200)


@pytest.mark.parametrize(
    "off",
    [always(HOUR), always(-HOUR), always(DAY), always(-DAY), strobe],
    ids=["an hour ahead", "an hour behind", "a day ahead", "a day behind", "strobing"],
)
@pytest.mark.parametrize("jumps", [False, True], ids=["from the start", "amid the work"])
def test_a_wrong_clock_changes_nothing(off: Callable[[float], timedelta], *, jumps: bool) -> None:
    """No lag is absurd, no change looks old, no event ends early or late, no scan comes too soon, nothing hangs."""

    async def main() -> None:
        clock = OddClock()
        stage = Stage(meter=Lags(), health=Waits(), clock=clock)
        stop = asyncio.Event()
        end = VirtualClock().now() + timedelta(minutes=30)
        for number in range(3):
            stage.put(document(number, "Jam", str(number), ends=end if number == 0 else None), told=False)
        if not jumps:
            clock.off = off
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(60)
        scanned = stage.db.scans["tricks"]
        clock.off = off
        for turn in range(60):
            stage.put(document(1, "Jam", f"turn {turn}"), told=True)
            await asyncio.sleep(20)
        assert len(stage.texts(0)) == 1, "ended early"
        await asyncio.sleep((end - VirtualClock().now()).total_seconds() + 10)
        assert stage.texts(0) == [], "not ended"
        assert differences(stage.db, {"tricks": TRICKS}, VirtualClock().now()) == []
        assert stage.db.scans["tricks"] == scanned, "scanned again"
        assert isinstance(stage.meter, Lags)
        assert isinstance(stage.health, Waits)
        assert min(stage.meter.lags) >= 0
        assert max(stage.meter.lags) < 2
        assert stage.health.longest < 2
        began = VirtualClock().monotonic()
        stop.set()
        await serving
        assert VirtualClock().monotonic() - began < 1

    virtual.run(main)


def test_a_wrong_clock_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """By how much, when it begins, and when it is over; whatever is told meanwhile goes by the database's."""

    async def main() -> None:
        clock = OddClock()
        clock.off = always(HOUR)
        stage, stop = Stage(clock=clock), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(100)
        clock.off = always(timedelta())
        await asyncio.sleep(100)
        stop.set()
        await serving

    with caplog.at_level(logging.INFO):
        virtual.run(main)
    said = [record.getMessage() for record in caplog.records if record.__dict__.get("action") == "clock_skew"]
    assert said == [
        "this host's clock is 3600 s ahead of the database's, by which everything is told",
        "this host's clock agrees with the database's again",
    ]


def test_a_change_of_the_future_counts_no_time() -> None:
    """The database's own clock has jumped back: what was committed before lies ahead, its lag is told as below zero."""

    async def main() -> None:
        stage = Stage(meter=Lags(), health=Waits())
        stop = asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(20)
        key = stage.put(document(1, "Ollie", "pop"), told=False)
        stage.db.record(DocumentChanged(key, VirtualClock().now() + HOUR))
        await asyncio.sleep(5)
        assert isinstance(stage.meter, Lags)
        assert isinstance(stage.health, Waits)
        assert stage.meter.lags[0] < -3500
        assert stage.health.longest < 2
        stop.set()
        await serving

    virtual.run(main)
