"""How much may be sent again: a tenth of what succeeds, so that retries never keep an overloaded provider down.

Source: Marc Brooker, "Fixing retries with token buckets and circuit breakers" (0.1 token a success, 1 a retry), and
MongoDB's DRIVERS-3240 with the same figures. A trickle by the clock is there for what failed last and has nobody's
success to live on (Finagle's `minRetriesPerSec`). Pure: times are passed in.
"""

from dataclasses import dataclass, replace
from typing import Final

EARNED: Final = 0.1
"""Retries that one success pays for."""

MOST: Final = 10.0
"""Retries in stock, at the start too: passing faults of a good day wait for nothing."""

EVERY: Final = 10.0
"""Seconds after which there is one more in any case."""


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """What is in stock, and since when the trickle counts (monotonic seconds)."""

    since: float
    stock: float = MOST

    def earned(self) -> "RetryBudget":
        """After a success."""
        return replace(self, stock=min(MOST, self.stock + EARNED))

    def wait(self, now: float) -> float:
        """Seconds until one more retry is paid for if nothing succeeds meanwhile; 0 when one is."""
        return max(0.0, (1.0 - self._at(now)) * EVERY)

    def spent(self, now: float) -> "RetryBudget":
        """After a retry, which `wait` allowed."""
        return RetryBudget(now, max(0.0, self._at(now) - 1.0))

    def _at(self, now: float) -> float:
        return min(MOST, self.stock + max(0.0, now - self.since) / EVERY)
