"""The database's wall time: lag, expiry and the age of scans are told by it, never by the clock of this host.

Between two answers it goes on by the monotonic clock, so a host whose clock is wrong, or jumps, shortens no event and
makes no change look old.
"""

import logging
from datetime import datetime, timedelta
from typing import Final

from brain.knowledge.log import log
from worker.clock import Clock
from worker.pipeline.around import Around
from worker.ports import ChangeStream

_logger = logging.getLogger(__name__)

SKEW_SECONDS: Final = 5.0
"""A difference between this host's clock and the database's that a person should hear of."""


class DatabaseClock:
    """Implements `worker.clock.Clock`; until the database has told its time, this host's wall time counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """The wall time, in UTC."""
        if self._told is None:
            return self._clock.now()
        moment, at = self._told
        return moment + timedelta(seconds=self._clock.monotonic() - at)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._clock.sleep(seconds)

    def told(self, moment: datetime, at: float) -> None:
        """That was the wall time at this monotonic time."""
        self._told = (moment, at)


class Timekeeper:
    """Asks the database for its time; `clock` is what everything under one leadership goes by."""

    def __init__(self, stream: ChangeStream, around: Around) -> None:
        self._stream = stream
        self._around = around
        self._skewed = False
        self.clock: Final = DatabaseClock(around.clock)

    async def ask(self) -> None:
        """Set the clock; says once when this host's own differs much, and once when it does no more."""
        asked = self._around.clock.monotonic()
        moment = await self._around.persist("stream", self._stream.clock)
        if moment is None:
            return
        answered = self._around.clock.monotonic()
        self.clock.told(moment, (asked + answered) / 2)
        ahead = (self._around.clock.now() - moment).total_seconds()
        skewed = abs(ahead) >= SKEW_SECONDS
        if skewed != self._skewed:
            self._skewed = skewed
            level = logging.WARNING if skewed else logging.INFO
            log(_logger, level, "clock_skew", _words(ahead, skewed=skewed), seconds=round(ahead, 1))


def _words(ahead: float, *, skewed: bool) -> str:
    if not skewed:
        return "this host's clock agrees with the database's again"
    off = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'}"
    return f"this host's clock is {off} the database's, by which everything is told"
