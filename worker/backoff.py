"""How long to wait before trying again: exponential with full jitter, so that many do not come back together."""

from random import Random
from typing import Final

_DOUBLINGS: Final = 30  # 2**30 s is past every cap; a larger exponent would only overflow


class Backoff:
    """Waits for one thing that fails in a row; `reset` when it worked."""

    def __init__(self, rng: Random, *, base: float = 0.1, cap: float = 60.0) -> None:
        self._rng = rng
        self._base = base
        self._cap = cap
        self._failures = 0

    @property
    def failures(self) -> int:
        """How many waits were asked for since the last reset."""
        return self._failures

    def next(self) -> float:
        """Seconds to wait now: uniform between 0 and the base doubled for each failure, capped."""
        ceiling = min(self._cap, self._base * 2 ** min(self._failures, _DOUBLINGS))
        self._failures += 1
        return self._rng.uniform(0.0, ceiling)

    def reset(self) -> None:
        """Start over: it worked."""
        self._failures = 0
