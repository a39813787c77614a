"""So much a minute, spread over it, and never more than the limit in any span that a provider may count by."""

import asyncio
from collections import deque
from typing import Final

from aiolimiter import AsyncLimiter

AT_ONCE: Final = 60
"""Parts of a minute's worth: one may go at once, so nothing waits much longer than a second behind what went before."""

PORTIONS: Final = 10
"""A provider may hold a tenth of the limit in each tenth of the minute, too."""

LONGER: Final = 0.1
"""Seconds that a span is longer here: two calls may be so much nearer to each other on arrival than when they left."""

_SMALL: Final = 20
"""Calls below a twentieth of a portion fill it well. Larger ones would leave up to half of it empty, so the last of
them may reach beyond: only a provider that counts by portions minds, and it says so."""

_ROUNDING: Final = 1e-6

_LOOK_AGAIN: Final = 0.02
"""Seconds between two looks at the bucket. Its own waiting aims at the very moment when there is room, which rounding
may put before it again and again."""


class _Span:
    """What went within the last so many seconds."""

    def __init__(self, seconds: float, most: float, counted: float) -> None:
        self._seconds, self._most, self._counted = seconds, most, counted
        self._gone: deque[tuple[float, float]] = deque()
        self._sum = 0.0

    def wait(self, amount: float, now: float) -> float:
        """Seconds until so much more fits; what is larger than all of it waits until nothing else is there."""
        while self._gone and self._gone[0][0] <= now:
            self._sum -= self._gone.popleft()[1]
        over = self._sum + min(amount, self._counted) - self._most
        wait = 0.0
        for until, size in self._gone:
            if over <= _ROUNDING:
                break
            over, wait = over - size, until - now
        return wait

    def add(self, amount: float, now: float) -> None:
        """It goes now; what is larger than all of it stays the longer."""
        self._gone.append((now + self._seconds * max(1.0, amount / self._most), amount))
        self._sum += amount


class Rate:
    """A limit a minute; None is none."""

    def __init__(self, per_minute: int | None) -> None:
        self._bucket: AsyncLimiter | None = None
        self._spans: tuple[_Span, ...] = ()
        self._turn = asyncio.Lock()
        if per_minute is not None:
            part, portion = max(1.0, per_minute / AT_ONCE), per_minute / PORTIONS
            self._bucket = AsyncLimiter(part, 60.0 * part / per_minute)
            self._spans = (
                _Span(60.0 + LONGER, per_minute, per_minute),
                _Span(60.0 / PORTIONS + LONGER, portion, portion / _SMALL),
            )

    async def acquire(self, amount: float = 1.0) -> None:
        """Wait until so much may be sent, in the order of coming: small ones would leave a large one no room."""
        if self._bucket is None:
            return
        async with self._turn:
            await self._save_up(self._bucket, amount)
            now = asyncio.get_running_loop().time
            while (wait := max(span.wait(amount, now()) for span in self._spans)) > 0:  # noqa: ASYNC110 - it knows how long
                await asyncio.sleep(wait)
            for span in self._spans:
                span.add(amount, now())

    async def _save_up(self, bucket: AsyncLimiter, amount: float) -> None:
        """Fill it part by part, as no more than one fits."""
        while amount > 0:
            part = min(amount, bucket.max_rate)
            while not bucket.has_capacity(part):  # noqa: ASYNC110 - nobody tells when a bucket has drained
                await asyncio.sleep(_LOOK_AGAIN)
            await bucket.acquire(part)
            amount -= part
