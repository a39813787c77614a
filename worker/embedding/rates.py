"""So much a minute, in small portions: a minute's worth at once would be twice the limit within the first minute."""

from typing import Final

from aiolimiter import AsyncLimiter

PORTIONS: Final = 10
"""Portions of a minute: what may go at once is a tenth of the limit, so a provider that counts by the clock's minute or
by a sliding one sees at most a tenth too much, once."""


class Rate:
    """A limit a minute; None is none."""

    def __init__(self, per_minute: int | None) -> None:
        portion = None if per_minute is None else max(1.0, per_minute / PORTIONS)
        seconds = 0.0 if per_minute is None or portion is None else 60.0 * portion / per_minute
        self._limiter = None if portion is None else AsyncLimiter(portion, seconds)

    async def acquire(self, amount: float = 1.0) -> None:
        """Wait until so much may be sent; what is larger than a portion is saved up for."""
        if self._limiter is None:
            return
        while amount > 0:
            part = min(amount, self._limiter.max_rate)
            await self._limiter.acquire(part)
            amount -= part
