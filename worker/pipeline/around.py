"""What every step may lean on: time, counters, health, probes and randomness, all passed in."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeVar

from worker.backoff import Backoff
from worker.clock import Clock
from worker.errors import Retryable
from worker.ports import Health, Meter, Probe

T = TypeVar("T")

LONGEST_WAIT: Final = 15.0
"""Seconds between two tries at most: what an outage of the database costs beyond its own length."""


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
    waiting: Counter[str] = field(default_factory=Counter[str])
    """How many wait for each reason now: it is over when the last of them got through."""

    async def persist(self, reason: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until it works, or patience ends; while it does not work, `reason` pauses readiness.

        Raises what is not Retryable at once, and the last Retryable when patience ends.
        """
        backoff = Backoff(self.rng, cap=LONGEST_WAIT)
        began: float | None = None
        try:
            while True:
                try:
                    return await attempt()
                except Retryable as error:
                    if began is None:
                        began = self.clock.monotonic()
                        self.waiting[reason] += 1
                    if self.spent(began):
                        raise
                    self.health.pause(reason, str(error))
                    await self.clock.sleep(error.retry_after or backoff.next())
        finally:
            if began is not None:  # however it ends, this one does not wait any more
                self.waiting[reason] -= 1
                if not self.waiting[reason]:
                    self.health.resume(reason)

    def spent(self, began: float) -> bool:
        """Whether patience has ended with an outage that began at that monotonic time."""
        return self.patience is not None and self.clock.monotonic() - began >= self.patience
