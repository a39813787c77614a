"""So much a minute, in small portions: a minute's worth at once would be twice the limit within the first minute."""

import asyncio
from typing import Final

from aiolimiter import AsyncLimiter

PORTIONS: Final = 10
"""Portions of a minute: what may go at once is a tenth of the limit, so a provider that counts by the clock's minute or
by a sliding one sees at most a tenth too much, once."""

_LOOK_AGAIN: Final = 0.02
"""Seconds between two looks at the bucket. Its own waiting aims at the very moment when there is room, which rounding
may put before it again and again."""


class Rate:
    """A limit a minute; None is none."""

    def __init__(self, per_minute: int | None) -> None:
        self._limiter: AsyncLimiter | None = None
        self._turn = asyncio.Lock()
        if per_minute is not None:
            portion = max(1.0, per_minute / PORTIONS)
            self._limiter = AsyncLimiter(portion, 60.0 * portion / per_minute)

    async def acquire(self, amount: float = 1.0) -> None:
        """Wait until so much may be sent; what is larger than a portion is saved up for.

        A portion each in the order of coming: a whole one wants an empty bucket, which smaller ones would never leave.
        """
        limiter = self._limiter
        if limiter is None:
            return
        while amount > 0:
            part = min(amount, limiter.max_rate)
            async with self._turn:
                while not limiter.has_capacity(part):  # noqa: ASYNC110 - nobody tells when a bucket has drained
                    await asyncio.sleep(_LOOK_AGAIN)
                await limiter.acquire(part)
            amount -= part
