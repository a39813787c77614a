"""A clock that runs faster than the machine's: real sockets and real tasks, and hours in seconds.

For waits of the code under test alone; what it waits for beside (an answer, a rate limiter of the loop) takes its
real time, which counts `speed` times as much here.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class FastClock:
    """Implements `worker.clock.Clock`."""

    def __init__(self, speed: float = 100.0) -> None:
        self._speed = speed
        self._began = time.monotonic()

    def now(self) -> datetime:
        """The wall time: EPOCH at the start."""
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Seconds since the start, as this clock has them."""
        return (time.monotonic() - self._began) * self._speed

    async def sleep(self, seconds: float) -> None:
        """Wait so long on this clock."""
        await asyncio.sleep(seconds / self._speed)
