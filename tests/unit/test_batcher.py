"""What the batching embedder sends: batches, no text twice, and what becomes of each caller."""

import asyncio

import pytest

from tests.support import virtual
from tests.support.batching import WORDS, Kit
from worker.embedding.batcher import CONTROL, REMEMBERED
from worker.embedding.lanes import LINGER, Limits
from worker.errors import Poison


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
