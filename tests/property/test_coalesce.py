"""The coalescer under any mix of puts, takes, releases and waits."""

import asyncio
from collections import Counter
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from tests.support import virtual
from worker.model import Change, DocKey, Origin
from worker.pipeline.coalesce import Coalescer, Received, Work

KEYS: Final = [DocKey.of("tricks", number) for number in range(4)]
ORIGINS: Final[tuple[Origin, ...]] = ("stream", "scan", "refresh")
WINDOW: Final = 0.3

PUT = st.tuples(st.just("put"), st.integers(0, 3), st.sampled_from(ORIGINS))
TAKE = st.tuples(st.just("take"), st.integers(1, 3), st.booleans())
RELEASE = st.tuples(st.just("release"), st.integers(0, 5), st.none())
WAIT = st.tuples(st.just("wait"), st.sampled_from((0.0, 0.1, 0.5)), st.none())


class Driver:
    """Plays steps, and keeps what a coalescer must never break."""

    def __init__(self) -> None:
        self.coalescer = Coalescer(virtual.VirtualClock(), WINDOW, capacity=1000)
        self.busy: list[Work] = []
        self.put = 0
        self.settled: Counter[int] = Counter()
        self.arrived: dict[int, float] = {}

    async def step(self, name: str, first: float, second: object) -> None:
        """One step."""
        if name == "put":
            number = self.put
            self.put += 1
            self.arrived[number] = asyncio.get_running_loop().time()
            origin: Origin = next(origin for origin in ORIGINS if origin == second)
            change = Change(KEYS[int(first)], origin)
            await self.coalescer.put(Received(change, lambda: self.settled.update([number])))
        elif name == "take":
            await self.take(int(first), urgent_only=bool(second))
        elif name == "release" and self.busy:
            await self.coalescer.release([self.busy.pop(int(first) % len(self.busy))])
        elif name == "wait":
            await asyncio.sleep(first)
        self.check()

    async def take(self, limit: int, *, urgent_only: bool = False) -> None:
        """Take what there is now, without waiting."""
        try:
            async with asyncio.timeout(0):
                works = await self.coalescer.take(limit, urgent_only=urgent_only)
        except TimeoutError:
            return
        assert 0 < len(works) <= limit
        keys = {work.key for work in works}
        assert len(keys) == len(works)
        assert not keys & {work.key for work in self.busy}, "one look in flight a document"
        self.busy += works

    def check(self) -> None:
        """Conservation: every change is settled once, or inside."""
        assert max(self.settled.values(), default=1) == 1
        assert self.put == self.settled.total() + self.coalescer.unsettled


@given(st.lists(st.one_of(PUT, TAKE, RELEASE, WAIT), max_size=40))
def test_every_change_is_settled_once_and_in_time(steps: list[tuple[str, float, object]]) -> None:
    """One look in flight a document, nothing lost or settled twice, and all settled soon after the last."""

    async def main() -> None:
        driver = Driver()
        for step in steps:
            await driver.step(*step)
        for _ in range(3):
            await asyncio.sleep(WINDOW)
            await driver.coalescer.release(driver.busy)
            driver.busy = []
            await driver.take(10)
            driver.check()
        await driver.coalescer.release(driver.busy)
        assert driver.coalescer.unsettled == driver.coalescer.waiting == 0
        assert driver.settled.total() == driver.put

    virtual.run(main)
