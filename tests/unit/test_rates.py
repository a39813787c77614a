"""So much a minute: no span that a provider may count by holds more, and hardly less."""

import asyncio
from itertools import pairwise
from random import Random

import pytest

from tests.support import virtual
from worker.embedding.rates import Rate

MINUTES = 3


async def _sent(rate: Rate, sizes: tuple[int, int], seconds: float) -> list[tuple[float, int]]:
    """What four eager senders sent, and when."""
    sent: list[tuple[float, int]] = []
    rng = Random(5)  # noqa: S311 - repeatable

    async def send() -> None:
        while True:
            size = rng.randint(*sizes)
            await rate.acquire(size)
            sent.append((asyncio.get_running_loop().time(), size))

    senders = [asyncio.create_task(send()) for _ in range(4)]
    await asyncio.sleep(seconds)
    for sender in senders:
        sender.cancel()
    await asyncio.wait(senders)
    return sent


def _most(sent: list[tuple[float, int]], span: float) -> int:
    """The most within any so many seconds; the worst ones begin with a sending."""
    return max(sum(size for at, size in sent if begin <= at < begin + span) for begin, _ in sent)


@pytest.mark.parametrize(
    ("limit", "sizes", "spans"),
    [
        (300_000, (600, 800), {60: 300_000, 6: 30_000}),
        (300_000, (8_000, 15_000), {60: 300_000}),  # too large to fill tenths well
        (60, (1, 1), {60: 60, 6: 6}),
        (7, (1, 1), {60: 7}),
    ],
    ids=["small", "large", "requests", "few"],
)
def test_no_span_holds_more_than_its_limit(limit: int, sizes: tuple[int, int], spans: dict[int, int]) -> None:
    """From the first moment on, and what is sent is at least 0.95 of it."""
    sent = virtual.run(lambda: _sent(Rate(limit), sizes, MINUTES * 60))
    for span, most in spans.items():
        assert _most(sent, span) <= most, span
    assert sum(size for _, size in sent) >= 0.95 * limit * MINUTES


def test_it_is_spread_over_the_minute() -> None:
    """Who comes late waits little: no more than about a second's worth goes at once."""
    sent = virtual.run(lambda: _sent(Rate(300_000), (600, 800), 60))
    assert _most(sent, 0.5) <= 300_000 / 60 * 1.5 + 800


def test_what_is_larger_than_the_limit_goes_alone() -> None:
    """And pays for itself: the next goes when its share of time is over."""
    sent = virtual.run(lambda: _sent(Rate(100), (250, 250), 600))
    gaps = [after - before for (before, _), (after, _) in pairwise(sent)]
    assert gaps
    assert all(150 <= gap <= 156 for gap in gaps), gaps
