"""How much may be sent again: a tenth of what succeeds, so that retries never keep an overloaded provider down.

Source: Marc Brooker, "Fixing retries with token buckets and circuit breakers" (0.1 token a success, 1 a retry), and
MongoDB's DRIVERS-3240 with the same figures. Where hardly anything succeeds, a trickle by the clock takes its place,
for what failed last and has nobody's success to live on (Finagle's `minRetriesPerSec`). Pure: times are passed in.
"""

from dataclasses import dataclass
from typing import Final

EARNED: Final = 0.1
"""Retries that one success pays for."""

MOST: Final = 2.0
"""Retries in stock: a passing fault waits for nothing."""

AT_START: Final = 1.0
"""In stock before anything succeeded: so the tenth holds within the first hundred already."""

EVERY: Final = 5.0
"""Seconds after which there is one more in any case; with two successes a second that is the tenth, and none beside it.

So what failed with seven others as an outage began is sent again within half a minute of its end.
"""

_ROUNDING: Final = 1e-8  # seconds; a wait that is too short to move the clock would never end


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """What was in stock at that time (monotonic seconds)."""

    since: float
    stock: float = AT_START

    def earned(self, now: float) -> "RetryBudget":
        """After a success: its pay, or what the clock has brought since the last one where that is more."""
        return RetryBudget(now, min(MOST, max(self.stock + EARNED, self._at(now))))

    def wait(self, now: float) -> float:
        """Seconds until one more retry is paid for if nothing succeeds meanwhile; 0 when one is."""
        wait = (1.0 - self._at(now)) * EVERY
        return wait if wait > _ROUNDING else 0.0

    def spent(self, now: float) -> "RetryBudget":
        """After a retry, which `wait` allowed."""
        return RetryBudget(now, max(0.0, self._at(now) - 1.0))

    def _at(self, now: float) -> float:
        return min(MOST, self.stock + max(0.0, now - self.since) / EVERY)
