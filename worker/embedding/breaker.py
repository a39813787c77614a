"""The circuit breaker: when the other side fails again and again, one caller at a time asks whether it is back.

The others wait at the door instead of failing, so an outage fills the pipeline up to its bounds and no document is
given up; when the probe succeeds the door opens for everybody.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from worker.backoff import Backoff
from worker.clock import Clock

THRESHOLD: Final = 5
"""Failures in a row that open the breaker."""


class Breaker:
    """Shared by every request to one endpoint."""

    def __init__(self, clock: Clock, backoff: Backoff) -> None:
        self._clock = clock
        self._backoff = backoff
        self._probing = asyncio.Lock()
        self._not_before = 0.0

    @property
    def open(self) -> bool:
        """Whether callers wait for a probe."""
        return self._backoff.failures >= THRESHOLD

    @asynccontextmanager
    async def permit(self) -> AsyncGenerator[None]:
        """Wait for the right to send one request."""
        async with AsyncExitStack() as door:
            await self.held()
            if self.open:  # also when it opened while we waited
                await door.enter_async_context(self._probing)
                await self.held()
                if not self.open:
                    await door.aclose()  # the one before us found it back: nobody waits for our answer
            yield

    def succeeded(self) -> None:
        """The endpoint answered."""
        self._backoff.reset()

    def failed(self) -> None:
        """The endpoint did not: everybody waits before the next request."""
        self.hold(self._backoff.next())

    def trip(self) -> None:
        """Open at once: what was answered will be answered again until a person acts."""
        while not self.open:
            self._backoff.next()

    def hold(self, seconds: float) -> None:
        """Let nobody send for so long (the endpoint asked for it): counts as no failure."""
        self._not_before = max(self._not_before, self._clock.monotonic() + seconds)

    async def held(self) -> None:
        """Wait until the last hold is over."""
        while (wait := self._not_before - self._clock.monotonic()) > 0:
            await self._clock.sleep(wait)
