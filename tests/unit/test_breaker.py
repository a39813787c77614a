"""The breaker: who may send, and when."""

import asyncio

import pytest

from tests.support import virtual
from tests.support.sim_weather import dice
from worker.backoff import Backoff
from worker.embedding.breaker import THRESHOLD, Breaker


class Endpoint:
    """Sends requests through a breaker, and counts how many are out at once."""

    def __init__(self) -> None:
        self.breaker = Breaker(virtual.VirtualClock(), Backoff(dice("breaker"), base=0.5, cap=30.0))
        self.works = False
        self.out = 0
        self.most = 0
        self.sent: list[float] = []

    async def send(self) -> bool:
        """One request of one second."""
        async with self.breaker.permit():
            self.sent.append(asyncio.get_running_loop().time())
            self.out += 1
            self.most = max(self.most, self.out)
            await asyncio.sleep(1)
            self.out -= 1
            if self.works:
                self.breaker.succeeded()
            else:
                self.breaker.failed()
            return self.works

    async def insist(self) -> None:
        """Until it works."""
        while not await self.send():
            pass


def test_closed_it_holds_nobody() -> None:
    """Requests go out beside each other."""

    async def main() -> None:
        endpoint = Endpoint()
        endpoint.works = True
        await asyncio.gather(*(endpoint.send() for _ in range(5)))
        assert endpoint.most == 5

    virtual.run(main)


def test_open_it_lets_one_at_a_time_ask() -> None:
    """After THRESHOLD failures in a row there is one probe at a time, at most every so often, whoever waits."""

    async def main() -> None:
        endpoint = Endpoint()
        for _ in range(THRESHOLD):
            assert not endpoint.breaker.open
            await endpoint.send()
        assert endpoint.breaker.open
        endpoint.most = 0
        callers = [asyncio.create_task(endpoint.insist()) for _ in range(8)]
        await asyncio.sleep(600)
        assert endpoint.most == 1
        assert len(endpoint.sent) - THRESHOLD < 100
        endpoint.works = True
        await asyncio.gather(*callers)
        assert endpoint.most > 1, "once it is back, nobody waits for the others"

    virtual.run(main)


def test_those_who_waited_while_it_opened_ask_one_by_one_too() -> None:
    """A caller that was held back looks again before it sends."""

    async def main() -> None:
        endpoint = Endpoint()
        endpoint.breaker.hold(5)
        callers = [asyncio.create_task(endpoint.insist()) for _ in range(4)]
        await asyncio.sleep(1)
        for _ in range(THRESHOLD):
            endpoint.breaker.failed()
        await asyncio.sleep(120)
        assert endpoint.most == 1
        endpoint.works = True
        await asyncio.gather(*callers)

    virtual.run(main)


def test_a_hold_is_no_failure() -> None:
    """The longest hold counts, it opens nothing, and everybody goes on after it."""

    async def main() -> None:
        endpoint = Endpoint()
        endpoint.works = True
        endpoint.breaker.hold(10)
        endpoint.breaker.hold(3)
        await asyncio.gather(*(endpoint.send() for _ in range(3)))
        assert (endpoint.sent, endpoint.breaker.open) == ([virtual.START + 10] * 3, False)

    virtual.run(main)


def test_a_probe_that_is_cancelled_leaves_the_door_to_the_next() -> None:
    """Nobody waits for one who is gone."""

    async def main() -> None:
        endpoint = Endpoint()
        for _ in range(THRESHOLD):
            endpoint.breaker.failed()
        first, second = (asyncio.create_task(endpoint.insist()) for _ in range(2))
        await asyncio.sleep(30)
        first.cancel()
        endpoint.works = True
        await second
        with pytest.raises(asyncio.CancelledError):
            await first

    virtual.run(main)
