"""How many requests may be out at once: additive increase, multiplicative decrease.

Source: Chiu and Jain (1989), as in TCP's congestion avoidance (RFC 5681): each answered round widens the window by one,
the other side's first complaint of a round halves it. Pure: times are passed in.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

NARROWEST: Final = 1.0
_FACTOR: Final = 0.5


@dataclass(frozen=True, slots=True)
class Window:
    """At most `limit` requests; never below one, never above `ceiling`."""

    ceiling: int
    size: float
    narrowed_at: float = -math.inf

    @classmethod
    def of(cls, ceiling: int) -> "Window":
        """Half open: soon at the ceiling where the provider takes it, and no flood at the start."""
        return cls(ceiling, max(NARROWEST, ceiling * _FACTOR))

    @property
    def limit(self) -> int:
        """How many may be out now."""
        return int(self.size)

    def widened(self) -> "Window":
        """After an answer: one more for each window's worth of answers."""
        return replace(self, size=min(float(self.ceiling), self.size + 1.0 / self.size))

    def narrowed(self, sent_at: float, now: float) -> "Window":
        """After a complaint about a request of that time: half, once for all that were sent before the last halving."""
        if sent_at < self.narrowed_at:
            return self
        return replace(self, size=max(NARROWEST, self.size * _FACTOR), narrowed_at=now)

    def closed(self, now: float) -> "Window":
        """After an outage: one at a time, so that recovery is no stampede."""
        return replace(self, size=NARROWEST, narrowed_at=now)
