"""What the batching embedder waits for: outages, throttles, limits a minute, a person."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from brain.knowledge.embedding import Embedded, Purpose
from tests.support import virtual
from tests.support.batching import WORDS, Client, Kit
from tests.support.provider_limit import ProviderLimit
from worker.embedding.gate import REFUSED_WAIT
from worker.embedding.lanes import LINGER, Limits
from worker.embedding.rates import Rate
from worker.errors import Malformed, PinMismatch, Refused, Throttled, Unavailable


def test_an_outage_is_waited_through() -> None:
    """However long: one probe at a time, not ready meanwhile, ready afterwards, nothing given up."""

    async def main() -> None:
        kit = Kit()
        kit.client.faults[-1] = Unavailable("down")
        embedding = asyncio.create_task(kit.right(WORDS))
        await asyncio.sleep(600)
        assert "embedding" in kit.health.reasons
        assert 20 < len(kit.client.calls) < 100
        kit.client.faults.clear()
        await asyncio.wait_for(embedding, 32)
        assert kit.health.reasons == {}

    virtual.run(main)


def test_a_throttle_is_obeyed_by_everybody() -> None:
    """Nobody sends before its time; a long one is told."""

    async def main() -> None:
        kit = Kit()
        kit.client.faults[0] = Throttled("slowly", retry_after=42.0)
        embedding = asyncio.create_task(kit.right(WORDS[:1]))
        await asyncio.sleep(5)
        assert "embedding" in kit.health.reasons
        await asyncio.gather(kit.right(WORDS[1:2]), embedding)
        assert [at for at, _ in kit.client.calls] == [LINGER, *[pytest.approx(43.02)] * 2]
        assert kit.health.reasons == {}

    virtual.run(main)


def test_a_throttle_holds_those_too_that_wait_for_their_minute() -> None:
    """They had their turn before it came, and are sent after it."""

    async def main() -> None:
        kit = Kit(Limits(texts=1, concurrency=10, requests_per_minute=5))
        kit.client.faults[0] = Throttled("slowly", retry_after=42.0)
        await kit.right(WORDS[:4])
        times = [at for at, _ in kit.client.calls]
        assert times[1] >= times[0] + 1 + 42, times

    virtual.run(main)


def test_throttles_of_one_round_are_one_throttle() -> None:
    """Where no wait is named ours grows by rounds: what was out together is refused once."""

    async def main() -> None:
        kit = Kit(Limits(texts=1, concurrency=16))
        kit.client.faults.update({number: Throttled("slowly") for number in range(8)})
        await kit.right(WORDS[:8])
        answered_at = [at for at, _ in kit.client.calls[8:]]
        assert answered_at[0] <= LINGER + 1 + 0.5, "eight at once, and half a second at most"

    virtual.run(main)


class Limited(Client):
    """A provider of three requests in any minute, which says when there is room again."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = ProviderLimit()

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Vectors, or the refusal."""
        now = asyncio.get_running_loop().time()
        if wait := self.limit.wait(len(texts), now, tokens=0, requests=3, per=60.0):
            self.faults[len(self.calls)] = Throttled("slowly", retry_after=wait)
        return await super().embed(texts, purpose)


def test_b27_three_requests_a_minute() -> None:
    """B27: eight whole batches in the three minutes that it implies; a throttle counts as no failure."""

    async def main() -> None:
        kit = Kit(Limits(texts=25), client=Limited())
        began = asyncio.get_running_loop().time()
        await kit.right([f"text {number}" for number in range(200)])
        assert 120 <= asyncio.get_running_loop().time() - began < 135
        assert {len(texts) for _, texts in kit.client.calls} == {25}, "no batch was taken apart"

    virtual.run(main)


def test_a_refused_key_is_tried_again_now_and_then() -> None:
    """It may be paid for: not ready, a try every REFUSED_WAIT seconds, and on when it works."""

    async def main() -> None:
        kit = Kit()
        kit.client.faults.update({number: Refused("402") for number in range(3)})
        await kit.right(WORDS[:1])
        times = [at for at, _ in kit.client.calls]
        assert [round(b - a) for a, b in pairwise(times)] == [1 + REFUSED_WAIT] * 3
        assert kit.health.reasons == {}

    virtual.run(main)


def test_malformed_replies_are_tried_again_and_told() -> None:
    """Three in a row are told as what they are; one good reply ends it."""

    async def main() -> None:
        kit = Kit()
        kit.client.faults[-1] = Malformed("html")
        embedding = asyncio.create_task(kit.right(WORDS[:1]))
        await asyncio.sleep(60)
        assert "embedding_malformed" in kit.health.reasons
        kit.client.faults.clear()
        await embedding
        assert kit.health.reasons == {}

    virtual.run(main)


def test_patience_begins_with_the_first_failure() -> None:
    """A command whose texts wait long for their turn still tries again when the endpoint fails once."""

    async def main() -> None:
        kit = Kit(Limits(texts=1, concurrency=1), patience=5)
        kit.client.faults[8] = Unavailable("once")
        await kit.right(WORDS)
        kit.client.faults[-1] = Unavailable("for ever")
        with pytest.raises(Unavailable, match="for ever"):
            await kit.right(["another"])

    virtual.run(main)


def test_what_a_person_must_mend_is_waited_for_by_the_daemon() -> None:
    """A model that the provider does not have for a moment pauses, loudly, and ends by itself."""

    async def main() -> None:
        kit = Kit()
        kit.client.faults[0] = PinMismatch("other model")
        await kit.right(WORDS[:2])
        assert not kit.health.reasons

    virtual.run(main)


def test_what_a_person_must_mend_comes_out_of_every_call_of_a_command() -> None:
    """And the next call asks again."""

    async def main() -> None:
        kit = Kit(patience=5)
        kit.client.faults[0] = PinMismatch("other model")
        results = await asyncio.gather(
            kit.embedder.embed(WORDS[:2]), kit.embedder.embed(WORDS[1:3]), return_exceptions=True
        )
        assert all(isinstance(result, PinMismatch) for result in results)
        await kit.right(WORDS[:1])

    virtual.run(main)


def test_minutes_have_limits() -> None:
    """Requests and tokens a minute, spread over it; a request larger than a minute's tokens still goes."""

    async def main() -> None:
        kit = Kit(Limits(texts=1, concurrency=10, requests_per_minute=5))
        await kit.right(WORDS)
        times = [at for at, _ in kit.client.calls]
        assert [round(b - a) for a, b in pairwise(times)] == [12] * 9
        kit = Kit(Limits(texts=5, tokens=100, tokens_per_minute=6))
        began = asyncio.get_running_loop().time()
        await kit.right(WORDS)
        assert len(kit.client.calls) == 2
        assert 180 <= asyncio.get_running_loop().time() - began <= 205, "20 words at 6 a minute"

    virtual.run(main)


def test_small_requests_do_not_starve_a_large_one() -> None:
    """A whole portion fits only into an empty bucket, which those that ask for half of one would never leave."""

    async def nibble(rate: Rate) -> None:
        while True:
            await rate.acquire(3)

    async def main() -> None:
        rate = Rate(60)
        nibblers = [asyncio.create_task(nibble(rate)) for _ in range(3)]
        await asyncio.sleep(10)
        await asyncio.wait_for(rate.acquire(12), 120)
        for task in nibblers:
            task.cancel()
        await asyncio.wait(nibblers)

    virtual.run(main)
