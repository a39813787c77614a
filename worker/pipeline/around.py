"""What every step may lean on: time, counters, health, probes and randomness, all passed in."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from worker.backoff import Backoff
from worker.clock import Clock
from worker.errors import Retryable
from worker.ports import Health, Meter, Probe

T = TypeVar("T")


class NoProbe:
    """Production: nothing happens at a probe's places."""

    async def reached(self, point: str) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Around:
    """The surroundings of the pipeline."""

    clock: Clock
    meter: Meter
    health: Health
    probe: Probe
    rng: Random

    async def persist(self, reason: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until it works, however long; while it does not, `reason` pauses readiness.

        Only what is not Retryable comes out.
        """
        backoff = Backoff(self.rng)
        while True:
            try:
                result = await attempt()
            except Retryable as error:
                self.health.pause(reason, str(error))
                await self.clock.sleep(error.retry_after or backoff.next())
            else:
                if backoff.failures:
                    self.health.resume(reason)
                return result
