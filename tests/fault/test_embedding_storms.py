"""Faults of the embedding endpoint through the embedder: batches, limits, retries, pauses; and B24, B25, B27.

The endpoint is a real server in a thread; the embedder's waits run on a clock that is faster than the machine's.
"""

import asyncio
import math
import socket
from random import Random

import pytest

from tests.support.embedder_faults import Fault
from tests.support.endpoint import GIVE_UP, Kit, Kits
from tests.support.fake_embedder import FakeEmbedder
from tests.support.serving import serving
from worker.embedding.gate import REFUSED_WAIT
from worker.embedding.lanes import Limits
from worker.embedding.retry_budget import EARNED, EVERY, MOST
from worker.errors import ConfigurationFault, Poison


def texts(count: int, prefix: str = "text") -> list[str]:
    """So many texts, no two alike."""
    return [f"{prefix} {number}" for number in range(count)]


async def test_n01_an_endpoint_that_is_not_there_yet(make: Kits) -> None:
    """N1: waits with growing pauses, tells that it is not ready, and goes on when somebody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: the port stays refused
        port = held.getsockname()[1]
        kit = make(f"http://127.0.0.1:{port}/api/v1")
        embedding = kit.start(kit.right(texts(3)))
        await kit.until(lambda: "embedding" in kit.health.reasons, "told")
        assert not embedding.done()
    with serving(FakeEmbedder(), port):
        await embedding
        assert kit.health.reasons == {}


@pytest.mark.parametrize("kind", ["reset_inside", "short", "gzip_bomb", "endless"])
async def test_n02_a_broken_answer_is_asked_for_again(server: FakeEmbedder, make: Kits, kind: str) -> None:
    """N2, N5, N7: once more, with the same texts."""
    kit = make(server.base_url)
    server.script[0] = Fault(kind)
    await kit.right(texts(3))
    assert [sorted(call.payload["input"]) for call in server.received] == [texts(3)] * 2


@pytest.mark.parametrize("change", ["nan", "zero", "infinite"])
async def test_n06_a_bad_vector_once_is_a_passing_fault(server: FakeEmbedder, make: Kits, change: str) -> None:
    """N6: nothing is written, it is asked for again."""
    kit = make(server.base_url)
    server.script |= {0: Fault("patch", change=change), 1: Fault("patch", change=change)}
    await kit.right(texts(4))


async def test_n06_a_text_without_vector_is_poison(server: FakeEmbedder, make: Kits) -> None:
    """N6: a text whose vector is bad each time is given up, alone, once another text's vector is whole."""
    kit = make(server.base_url)
    server.always = Fault("void", word="text 5")
    results = await asyncio.wait_for(kit.embedder.embed(texts(10)), GIVE_UP)
    assert [at for at, result in enumerate(results) if isinstance(result, Poison)] == [5]


async def test_n06_an_endpoint_of_zeros_gives_up_no_text(server: FakeEmbedder, make: Kits) -> None:
    """N6: while every vector is bad, the endpoint is to blame: not ready, and good documents stay alive."""
    kit = make(server.base_url, speed=300)
    server.always = Fault("patch", change="zero")
    embedding = kit.start(kit.right(["a lone text"]))
    await kit.until(lambda: server.calls > 15, "many tries")
    assert {"embedding", "embedding_malformed"} <= kit.health.reasons.keys()
    server.always = None
    await embedding
    assert kit.health.reasons == {}


async def test_n06_a_wrong_width_three_times_is_a_configuration_fault(server: FakeEmbedder, make: Kits) -> None:
    """N6: a command ends and says it; the daemon says it, waits, and goes on by itself when it is put right."""
    server.always = Fault("patch", change="narrow")
    command = make(server.base_url, patience=1000)
    with pytest.raises(ConfigurationFault, match="3 times in a row"):
        await asyncio.wait_for(command.embedder.embed(texts(2)), GIVE_UP)
    assert server.calls == 3
    daemon = make(server.base_url, speed=1000)
    embedding = daemon.start(daemon.right(texts(2)))
    await daemon.until(lambda: "embedding_refused" in daemon.health.reasons, "told")
    server.always = None
    await embedding
    assert daemon.health.reasons == {}


@pytest.mark.parametrize("header", ["20", "19.5", "Fri, 31 Dec 2999 23:59:59 GMT", "999999", "-5", "soon"])
async def test_n08_a_throttle_slows_the_whole_client(server: FakeEmbedder, make: Kits, header: str) -> None:
    """N8: whoever comes while it lasts waits too; it counts as no failure, and batches stay whole."""
    kit = make(server.base_url)
    server.script[0] = Fault("status", status=429, headers={"Retry-After": header})
    began = kit.clock.monotonic()
    first = kit.start(kit.right(texts(3)))
    await kit.until(lambda: server.calls == 1, "the first call")
    await asyncio.gather(first, kit.right(texts(2, "other")))
    waited = kit.clock.monotonic() - began
    named = {"20": 20.0, "19.5": 19.5, "-5": 0.0, "soon": 0.0}.get(header, 60.0)
    assert waited >= named
    assert server.calls <= 3
    assert sorted(server.received[0].payload["input"]) == texts(3)
    assert all(
        set(texts(3)) <= set(call.payload["input"]) or not set(texts(3)) & set(call.payload["input"])
        for call in server.received
    ), "the throttled batch stayed whole"


@pytest.mark.parametrize("count", [8, 16])
async def test_n08_a_short_wait_is_not_made_long(server: FakeEmbedder, make: Kits, count: int) -> None:
    """N8: a fraction of a second is obeyed as it is named, each time, however often."""
    kit = make(server.base_url, Limits(texts=8), speed=1)
    refusal = Fault("status", status=429, headers={"Retry-After": "0.3"})
    server.script |= dict.fromkeys(range(count), refusal)
    began = kit.clock.monotonic()
    await kit.right(texts(64))
    assert 0.3 * 2 <= kit.clock.monotonic() - began < 0.3 * count + 5.0
    assert kit.health.reasons == {}


async def test_n08_short_waits_without_end_are_told(server: FakeEmbedder, make: Kits) -> None:
    """N8: who asks for a moment's patience again and again holds everything up, and is not asked all the time."""
    kit = make(server.base_url, speed=20)
    server.always = Fault("status", status=429, headers={"Retry-After": "0.001"})
    embedding = kit.start(kit.right(texts(3)))
    await kit.until(lambda: "embedding" in kit.health.reasons, "told")
    assert server.calls <= 20 * 20, "20 a second at most, and it is told after ten seconds"
    server.always = None
    await embedding
    assert kit.health.reasons == {}


async def _keep_busy(kit: Kit, callers: int, done: list[int]) -> None:
    async def one(caller: int) -> None:
        for turn in range(10**6):
            await kit.right([f"caller {caller} text {turn}"])
            done.append(caller)

    async with asyncio.TaskGroup() as group:
        for caller in range(callers):
            group.create_task(one(caller))


@pytest.mark.slow
@pytest.mark.parametrize("status", [503, 429])
async def test_n09_a_storm_and_its_end(server: FakeEmbedder, make: Kits, status: int) -> None:
    """N9: ten minutes of failures: asked seldom; half fail: retries keep to their budget; the end: all is well soon."""
    kit = make(server.base_url, Limits(texts=1), speed=100)
    done: list[int] = []
    server.always = Fault("status", status=status)
    busy = kit.start(_keep_busy(kit, 6, done))
    began = kit.clock.monotonic()
    await kit.until(lambda: kit.clock.monotonic() - began > 600, "ten minutes")
    assert not done
    assert "embedding" in kit.health.reasons
    assert server.calls <= 20 + 600 / 5, "asked about every 15 s on average, after the first few"

    rng = Random(3)  # noqa: S311 - repeatable
    before = server.calls
    server.script.update({n: Fault("status", status=500) for n in range(before, before + 50_000) if rng.random() < 0.5})
    server.always = None
    half = kit.clock.monotonic()
    await kit.until(lambda: kit.clock.monotonic() - half > 300, "five minutes of every other call")
    calls, answered = server.calls - before, len(done)
    trickle = (kit.clock.monotonic() - half) / EVERY
    probes = (kit.clock.monotonic() - half) / 5
    assert calls - answered <= answered * EARNED + MOST + trickle + probes + 8, (calls, answered)
    # Half of all texts fail and nobody has others, so the clock pays; a tenth is a tenth where there are (below).

    server.script.clear()
    well, sofar = kit.clock.monotonic(), len(done)
    await kit.until(lambda: len(done) > sofar + 20, "twenty texts")
    assert kit.clock.monotonic() - well < 60, "recovery"
    assert kit.health.reasons == {}
    busy.cancel()


async def test_n09_retries_are_a_tenth_from_the_beginning(server: FakeEmbedder, make: Kits) -> None:
    """N9: every fourth call fails; as long as there is other work, at most one call in ten is one made again."""
    kit = make(server.base_url, Limits(texts=1), speed=20)
    server.script |= {number: Fault("status", status=500) for number in range(0, 10_000, 4)}
    kit.start(kit.right(texts(3000)))

    def extra() -> tuple[int, int]:
        """How many of the calls so far were a text's first, and how many were not."""
        sent = [call.payload["input"][0] for call in list(server.received)]
        return (first := len(set(sent))), len(sent) - first

    for first in (100, 1000):
        await kit.until(lambda first=first: server.calls >= first * 1.1 and extra()[0] >= first, f"{first} texts")
        fresh, again = extra()
        assert again <= EARNED * fresh, (fresh, again)
    assert again >= 0.5 * EARNED * fresh, "and what may be sent again is"


async def test_n09_recovery_is_no_stampede(server: FakeEmbedder, make: Kits) -> None:
    """N9: when it is back one asks, then a few, then more: never all who waited at once."""
    kit = make(server.base_url, Limits(texts=1, concurrency=16))
    server.always = Fault("status", status=503)
    waiting = [kit.start(kit.right([f"text {n}"])) for n in range(64)]
    await kit.until(lambda: "embedding" in kit.health.reasons, "the outage")
    server.always = Fault("slow", seconds=0.02)
    server.most_at_once = 0
    await asyncio.gather(*waiting)
    assert 1 <= server.most_at_once <= 1 + math.isqrt(2 * 64), "it widens by one a round"


async def test_n10_a_bad_text_after_an_outage_ends_it_too(server: FakeEmbedder, make: Kits) -> None:
    """N10: the endpoint answers again, if only to refuse the text that waits: ready, though nothing was embedded."""
    kit = make(server.base_url, speed=300)
    server.always = Fault("status", status=503)
    waiting = asyncio.create_task(kit.embedder.embed(["the bad one"]))
    await kit.until(lambda: "embedding" in kit.health.reasons, "told")
    server.always = Fault("poison", word="bad")
    assert isinstance((await asyncio.wait_for(waiting, GIVE_UP))[0], Poison)
    assert kit.health.reasons == {}


@pytest.mark.parametrize("status", [400, 413])
async def test_n10_one_bad_text_in_64(server: FakeEmbedder, make: Kits, status: int) -> None:
    """N10: it alone is given up, 63 have their vectors, in about twice the logarithm of requests."""
    kit = make(server.base_url)
    server.always = Fault("poison", word="text 42", status=status)
    results = await asyncio.wait_for(kit.embedder.embed(texts(64)), GIVE_UP)
    assert [at for at, result in enumerate(results) if isinstance(result, Poison)] == [42]
    assert server.calls <= 1 + 2 * 6


@pytest.mark.parametrize("status", [401, 402, 403])
async def test_n11_a_refused_key_pauses(server: FakeEmbedder, make: Kits, status: int) -> None:
    """N11: loud, one try each REFUSED_WAIT, no text given up, and on by itself when the key works again."""
    kit = make(server.base_url, Limits(texts=1), speed=500)
    server.always = Fault("status", status=status, body=f'{{"error":{{"code":{status},"message":"no"}}}}')
    embedding = kit.start(kit.right(texts(12)))
    await kit.until(lambda: "embedding_refused" in kit.health.reasons, "told")
    assert "check the key" in kit.health.reasons["embedding_refused"]
    began, before = kit.clock.monotonic(), server.calls
    await kit.until(lambda: kit.clock.monotonic() - began > 20 * REFUSED_WAIT, "ten minutes")
    assert server.calls - before <= 21
    server.always = None
    await embedding
    assert kit.health.reasons == {}


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_n11_a_refusal_of_everything_is_the_providers_matter(
    server: FakeEmbedder, make: Kits, status: int
) -> None:
    """N11: also where it is told as if of the texts: a sound one is refused too, so only the bad one is given up."""
    kit = make(server.base_url, Limits(texts=4), speed=500)
    server.always = Fault("status", status=status, body=f'{{"error":{{"code":{status},"message":"no"}}}}')
    embedding = asyncio.create_task(kit.embedder.embed(texts(12)))
    await kit.until(lambda: "embedding_refused" in kit.health.reasons, "told")
    assert "it takes nothing at all" in kit.health.reasons["embedding_refused"]
    began, before = kit.clock.monotonic(), server.calls
    await kit.until(lambda: kit.clock.monotonic() - began > 20 * REFUSED_WAIT, "ten minutes")
    assert server.calls - before <= 24, "one at a time, seldom; a few were on their way"
    assert "embedding_refused" in kit.health.reasons
    server.always = Fault("poison", word="text 7")
    results = await asyncio.wait_for(embedding, GIVE_UP)
    assert [at for at, result in enumerate(results) if isinstance(result, Poison)] == [7]
    assert kit.health.reasons == {}
    server.always, before = None, server.calls
    await kit.right(texts(8, "later"))
    assert server.calls - before == 2, "requests are as large as before"


async def test_n11_a_command_says_that_everything_is_refused(server: FakeEmbedder, make: Kits) -> None:
    """N11: and ends."""
    kit = make(server.base_url, patience=1000)
    server.always = Fault("status", status=400)
    with pytest.raises(ConfigurationFault, match="it takes nothing at all: check EMBEDDING_MODEL"):
        await asyncio.wait_for(kit.embedder.embed(texts(3)), GIVE_UP)


async def test_n13_kept_connections_that_close(server: FakeEmbedder, make: Kits) -> None:
    """N13: a peer that closes each idle connection costs no failure: nothing waits, nothing is told."""
    kit = make(server.base_url)
    server.close_idle = True
    for n in range(5):
        await kit.right([f"text {n}"])
    assert server.calls == 5
    assert kit.health.reasons == {}


async def test_n15_another_model_answers(server: FakeEmbedder, make: Kits) -> None:
    """N15: the same width and another name: nothing of it is used, and a person is told which model it was."""
    kit = make(server.base_url, speed=500)
    server.model = "openai/another-model"
    embedding = kit.start(kit.right(texts(2)))
    await kit.until(lambda: "embedding_refused" in kit.health.reasons, "told")
    assert "another-model" in kit.health.reasons["embedding_refused"]
    assert not embedding.done()
    server.model = None
    await embedding


async def test_b24_more_tokens_than_a_request_may_hold(server: FakeEmbedder, make: Kits) -> None:
    """B24: split until it fits, all stored, never the same request twice, and the size is remembered."""
    kit = make(server.base_url, Limits(texts=128, tokens=60_000))
    server.always = Fault("cap", tokens=8000)
    body = " ".join(["word"] * 398)
    await kit.right([f"{n} {body} first" for n in range(60)])
    asked = [tuple(call.payload["input"]) for call in server.received]
    assert len(set(asked)) == len(asked), "a 400 is never sent again unchanged"
    before = server.calls
    await kit.right([f"{n} {body} second" for n in range(60)])
    assert server.calls - before <= 5, "smaller from the start"


async def test_b25_a_blank_text_among_good_ones(server: FakeEmbedder, make: Kits) -> None:
    """B25: it alone has no vector and is never sent; its neighbours have theirs."""
    kit = make(server.base_url)
    results = await asyncio.wait_for(kit.embedder.embed([*texts(10), "\n \n", *texts(10, "more")]), GIVE_UP)
    assert [at for at, result in enumerate(results) if isinstance(result, Poison)] == [10]
    assert all(text.strip() for call in server.received for text in call.payload["input"])


async def test_b27_three_requests_a_period(server: FakeEmbedder, make: Kits) -> None:
    """B27: done in the time that the limit implies, in whole batches, and no throttle counts as a failure."""
    kit = make(server.base_url, Limits(texts=25), speed=1)
    server.always = Fault("limited", requests=3, per=1.0, seconds=0.01)
    began = kit.clock.monotonic()
    await kit.right(texts(200))
    took = kit.clock.monotonic() - began
    accepted = [call for call in server.received if len(call.payload["input"]) == 25]
    assert len(accepted) == server.calls, "no batch was taken apart"
    assert 2.0 <= took < 10.0, "eight requests, three a second"
    assert "embedding" not in kit.health.reasons
