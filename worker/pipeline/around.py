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
    """The surroundings of the pipeline.

    `patience` is how many seconds a command waits through an outage, from the first failure on, before it gives up;
    None, for the daemon, is for ever.
    """

    clock: Clock
    meter: Meter
    health: Health
    probe: Probe
    rng: Random
    patience: float | None = None

    async def persist(self, reason: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until it works, or patience ends; while it does not work, `reason` pauses readiness.

        Raises what is not Retryable at once, and the last Retryable when patience ends.
        """
        backoff = Backoff(self.rng)
        began: float | None = None
        try:
            while True:
                try:
                    return await attempt()
                except Retryable as error:
                    began = self.clock.monotonic() if began is None else began
                    if self.spent(began):
                        raise
                    self.health.pause(reason, str(error))
                    await self.clock.sleep(error.retry_after or backoff.next())
        finally:
            if backoff.failures:
                self.health.resume(reason)  # however it ends: nobody waits for it any more

    def spent(self, began: float) -> bool:
        """Whether patience has ended with an outage that began at that monotonic time."""
        return self.patience is not None and self.clock.monotonic() - began >= self.patience
