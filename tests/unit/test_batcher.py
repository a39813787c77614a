"""The batching embedder over a scripted client."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pytest

from brain.knowledge.embedding import Embedded, Purpose, Usage
from tests.support import virtual
from tests.support.provider_limit import ProviderLimit
from tests.support.sim_recorders import CrashingProbe, SimHealth, SimMeter
from tests.support.sim_source import MODEL, WordCounter, vector_of
from tests.support.sim_stage import FAIR
from tests.support.sim_weather import Weather, dice
from worker.embedding.batcher import CONTROL, REMEMBERED, BatchingEmbedder
from worker.embedding.gate import REFUSED_WAIT
from worker.embedding.lanes import LINGER, Limits
from worker.embedding.rates import Rate
from worker.errors import Malformed, PinMismatch, Poison, Refused, Throttled, Unavailable
from worker.pipeline.around import Around

WORDS: Final = [f"text {number}" for number in range(10)]


class Client:
    """Implements EmbeddingClient: answers after a second, or as scripted by the number of the call."""

    model = MODEL

    def __init__(self) -> None:
        self.calls: list[tuple[float, list[str]]] = []
        self.faults: dict[int, Exception] = {}
        self.poison: Callable[[str], bool] = lambda _text: False
        self.out = self.most = 0

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Vectors, or the fault of this call."""
        number = len(self.calls)
        self.calls.append((round(asyncio.get_running_loop().time() - virtual.START, 3), list(texts)))
        self.out += 1
        self.most = max(self.most, self.out)
        try:
            await asyncio.sleep(1)
        finally:
            self.out -= 1
        if fault := self.faults.get(number, self.faults.get(-1)):
            raise fault
        if any(map(self.poison, texts)):
            message = "one of these"
            raise Poison(message)
        return Embedded(tuple(map(vector_of, texts)), Usage(len(texts)))

    async def close(self) -> None:
        """Nothing to give back."""


class Kit:
    """An embedder with what it leans on."""

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        patience: float | None = None,
        client: Client | None = None,
    ) -> None:
        self.client, self.health, self.meter = client or Client(), SimHealth(), SimMeter()
        probe = CrashingProbe(Weather(dice("w"), FAIR))
        around = Around(virtual.VirtualClock(), self.meter, self.health, probe, dice("batcher"), patience)
        self.embedder = BatchingEmbedder(self.client, WordCounter(), limits, around)

    async def right(self, texts: Sequence[str]) -> None:
        """Embed texts and see that each has its own vector."""
        results = await self.embedder.embed(texts)
        for text, result in zip(texts, results, strict=True):
            assert not isinstance(result, Poison)
            assert np.array_equal(result, vector_of(text))


def test_callers_share_a_request_and_a_text_is_sent_once() -> None:
    """Texts that come within the linger go together; one that two want is there once; each gets its own vector."""

    async def main() -> None:
        kit = Kit()
        await asyncio.gather(kit.right(WORDS[:3]), kit.right([WORDS[2], WORDS[1], WORDS[5], WORDS[5]]))
        assert [(at, sorted(texts)) for at, texts in kit.client.calls] == [(LINGER, [*WORDS[:3], WORDS[5]])]
        await kit.right([])
        assert len(kit.client.calls) == 1

    virtual.run(main)


def test_every_answered_request_is_told_as_an_advance() -> None:
    """A document of many requests is not stuck while they are answered."""

    async def main() -> None:
        kit = Kit(Limits(texts=2, concurrency=1))
        await kit.right(WORDS)
        assert kit.health.advances == len(kit.client.calls) == 5

    virtual.run(main)


def test_a_text_that_is_on_its_way_is_not_sent_again() -> None:
    """Also when the request is out already."""

    async def main() -> None:
        kit = Kit()
        first = asyncio.create_task(kit.right(WORDS[:1]))
        await asyncio.sleep(0.5)
        await kit.right(WORDS[:2])
        await first
        assert [texts for _, texts in kit.client.calls] == [WORDS[:1], WORDS[1:2]]

    virtual.run(main)


def test_a_vector_is_remembered_until_its_document_is_stored() -> None:
    """Another document with the same text may ask in between; a bounded number is, and no failure."""

    async def main() -> None:
        kit = Kit()
        await kit.right(WORDS[:1])
        await kit.right(WORDS[:2])
        assert [texts for _, texts in kit.client.calls] == [WORDS[:1], WORDS[1:2]]
        await kit.right([f"other {number}" for number in range(REMEMBERED)])
        assert len(kit.embedder._in_flight) == REMEMBERED  # pyright: ignore[reportPrivateUsage]
        sent = len(kit.client.calls)
        await kit.right(WORDS[:1])
        assert len(kit.client.calls) == sent + 1
        kit.client.poison = lambda text: text == "bad"
        for _ in range(2):
            assert isinstance((await kit.embedder.embed(["bad"]))[0], Poison)
        assert [texts for _, texts in kit.client.calls[sent + 1 :]] == [["bad"], [CONTROL]] * 2

    virtual.run(main)


def test_requests_are_cut_by_count_and_by_tokens_and_run_beside_each_other() -> None:
    """Never more than the limits; a text above the limit of tokens goes alone; at most `concurrency` at once."""

    async def main() -> None:
        kit = Kit(Limits(texts=3, tokens=7, concurrency=2))
        long = " ".join(["long"] * 20)
        await kit.right([*WORDS[:4], long, *WORDS[4:]])
        sent = [texts for _, texts in kit.client.calls]
        assert sorted(map(len, sent)) == [1, 1, 3, 3, 3]
        assert [long] in sent
        assert kit.client.most == 2

    virtual.run(main)


@pytest.mark.parametrize("bad", [{0}, {9}, {4, 5}, set(range(10))], ids=str)
def test_a_poison_text_is_found_by_halving(bad: set[int]) -> None:
    """It alone fails; all others get their vectors; the requests grow with the logarithm."""

    async def main() -> None:
        kit = Kit()
        kit.client.poison = lambda text: text in {f"text {number}" for number in bad}
        results = await kit.embedder.embed(WORDS)
        assert {at for at, result in enumerate(results) if isinstance(result, Poison)} == bad
        assert len(kit.client.calls) <= 1 + 2 * 4 * len(bad)

    virtual.run(main)


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


def test_a_bug_in_the_client_comes_out_and_nobody_waits_for_ever() -> None:
    """Whatever it raises reaches the callers."""

    async def main() -> None:
        kit = Kit()
        kit.client.faults[0] = RuntimeError("a bug")
        with pytest.raises(RuntimeError, match="a bug"):
            await asyncio.wait_for(kit.embedder.embed(WORDS), 100)

    virtual.run(main)


def test_one_caller_that_is_cancelled_takes_nothing_from_the_others() -> None:
    """Its texts are shared: who else waits for them gets them, from the one request."""

    async def main() -> None:
        kit = Kit()
        first = asyncio.create_task(kit.embedder.embed(WORDS[:3]))
        second = asyncio.create_task(kit.right(WORDS[1:4]))
        await asyncio.sleep(0.5)
        first.cancel()
        await second
        assert len(kit.client.calls) == 1
        assert first.cancelled()

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


def test_closing_gives_up_what_is_on_its_way() -> None:
    """No task is left behind."""

    async def main() -> None:
        kit = Kit()
        embedding = asyncio.create_task(kit.embedder.embed(WORDS))
        await asyncio.sleep(0.5)
        embedding.cancel()
        await kit.embedder.close()
        assert kit.client.out == 0
        await asyncio.wait({embedding})
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtual.run(main)
