"""The faults N1 to N5, N7, N13, N14 and N16 of the fault list, on the embedding client: what happens to a connection.

A real server in a thread, both HTTP libraries. A client never retries (but for N13) and never waits past its deadline;
what it raises tells the caller what to do.
"""

import asyncio
import json
import socket
import sys
import time

import pytest

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.errors import (
    KnowledgeError,
    Malformed,
    NotSent,
    Retryable,
    Unreachable,
)
from tests.support.embedder_faults import Fault
from tests.support.endpoint import PATIENCE, Connect
from tests.support.fake_embedder import FakeEmbedder, vector_of
from tests.support.processes import eventually
from tests.support.serving import serving

DEADLINE = 0.4  # seconds, for the stalls, which never end by themselves


async def test_n01_nobody_listens(connect: Connect) -> None:
    """N1: a refused connection is NotSent, each time, and says where it went."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: the port stays refused
        client = connect(f"http://127.0.0.1:{held.getsockname()[1]}/api/v1")
        for _ in range(2):
            with pytest.raises(NotSent, match=r"127\.0\.0\.1"):
                await client.embed(["kickflip"])


async def test_n01_a_name_that_nobody_knows(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """N1: a host that cannot be resolved is NotSent; no resolver is asked (glibc makes no attempt)."""
    monkeypatch.setenv("RES_OPTIONS", "attempts:0")
    with pytest.raises(NotSent, match=r"nope\.invalid"):
        await connect("https://nope.invalid/api/v1").embed(["kickflip"])


async def _broken(
    server: FakeEmbedder, client: OpenRouterClient, kind: str, error: type[KnowledgeError], **fields: float
) -> None:
    """The fault is retryable, ends within the deadline or by itself in seconds, and the next call works."""
    server.script[0] = Fault(kind, **fields)  # pyright: ignore[reportArgumentType] - floats alone are passed
    if kind.startswith("stall") or kind == "drip":
        client.deadline_seconds = DEADLINE
    started = time.monotonic()
    with pytest.raises(error) as caught:
        await client.embed(["kickflip"])
    assert time.monotonic() - started < min(client.deadline_seconds, 5.0) + 5.0
    client.deadline_seconds = PATIENCE
    assert isinstance(caught.value, Retryable)
    assert (await client.embed(["kickflip"])).vectors[0].tolist() == vector_of("kickflip", 8)


@pytest.mark.parametrize(("kind", "error"), [("reset_before", Unreachable), ("reset_inside", Malformed)])
async def test_n02_resets(server: FakeEmbedder, connect: Connect, kind: str, error: type[KnowledgeError]) -> None:
    """N2: before and within the answer."""
    await _broken(server, connect(server.base_url), kind, error)


async def test_n02_a_reset_after_the_whole_body(server: FakeEmbedder, connect: Connect) -> None:
    """N2: what came whole before it is a good answer, else it is retryable; the next call has a new connection."""
    client = connect(server.base_url)
    server.script[0] = Fault("reset_after")
    try:
        first = (await client.embed(["kickflip"])).vectors[0].tolist()
    except Retryable:
        first = vector_of("kickflip", 8)  # the system threw the received bytes away
    assert first == (await client.embed(["kickflip"])).vectors[0].tolist() == vector_of("kickflip", 8)


@pytest.mark.parametrize("kind", ["stall_accept", "stall_headers", "stall_body"])
async def test_n03_stalls(server: FakeEmbedder, connect: Connect, kind: str) -> None:
    """N3: after the accept, the headers, half the body: the deadline ends it."""
    await _broken(server, connect(server.base_url), kind, Unreachable)


async def test_n04_a_slow_loris(server: FakeEmbedder, connect: Connect) -> None:
    """N4: a byte now and then resets every read timeout; the deadline is over all."""
    await _broken(server, connect(server.base_url), "drip", Unreachable)


async def test_n05_fewer_bytes_than_announced(server: FakeEmbedder, connect: Connect) -> None:
    """N5: never parsed."""
    await _broken(server, connect(server.base_url), "short", Malformed)


@pytest.mark.parametrize(
    ("kind", "error"), [("endless", Malformed), ("gzip_bomb", Malformed), ("big_header", Unreachable)]
)
async def test_n07_answers_without_end(
    server: FakeEmbedder, connect: Connect, kind: str, error: type[KnowledgeError]
) -> None:
    """N7: the byte cap ends it, or the library's own of a header, and no deadline."""
    await _broken(server, connect(server.base_url), kind, error)


@pytest.mark.parametrize("kind", ["endless", "gzip_bomb", "big_header"])
@pytest.mark.parametrize("library", ["httpx2", "httpx"])
async def test_n07_memory_is_bounded(server: FakeEmbedder, kind: str, library: str) -> None:
    """N7: in a process of its own, whose peak is that call's."""
    server.script |= {1: Fault(kind), 2: Fault(kind)}  # what ends before it begins is asked for once more (N13)
    command = (sys.executable, "-m", "tests.support.embedding_peak", server.base_url, library)
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(child.communicate(), 60)
    told = json.loads(out)
    assert told["error"] in {"Malformed", "Unreachable"}
    assert told["megabytes"] < 32  # the bomb unpacks to 128


async def test_n13_a_kept_connection_that_was_closed(server: FakeEmbedder, connect: Connect) -> None:
    """N13: a peer that closes after each answer costs no failed call."""
    client = connect(server.base_url)
    server.close_idle = True
    for count in range(1, 6):
        await client.embed(["kickflip"])
        assert server.calls == count
    assert server.connections == 5


async def test_n13_closed_at_the_very_moment_of_the_request(server: FakeEmbedder, connect: Connect) -> None:
    """N13: a kept connection that dies under the next request is replaced once; a fresh one that dies is a failure."""
    client = connect(server.base_url)
    await client.embed(["kickflip"])
    server.script[1] = Fault("reset_before")
    assert (await client.embed(["kickflip"])).usage.twice, "it may be on the bill twice"
    assert (server.calls, server.connections) == (3, 2)
    server.always = Fault("reset_before")
    with pytest.raises(Unreachable):
        await client.embed(["kickflip"])
    assert server.calls == 5


async def test_n14_one_byte_slices_work(server: FakeEmbedder, connect: Connect) -> None:
    """N14: a slow answer that ends within the deadline is a good answer."""
    server.always = Fault("drip", seconds=0)
    vectors = (await connect(server.base_url).embed(["kickflip"])).vectors
    assert vectors[0].tolist() == vector_of("kickflip", 8)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"])
async def test_n16_proxies_of_the_environment(
    server: FakeEmbedder, connect: Connect, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """N16: the environment's proxy sees nothing."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with serving(FakeEmbedder()) as proxy:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await connect(server.base_url).embed(["kickflip"])
        assert proxy.connections == 0
    assert not server.received[0].proxied


async def test_n14_a_kilobyte_a_second(server: FakeEmbedder, connect: Connect) -> None:
    """N14: works where the deadline allows it, and ends with the deadline where it does not."""
    server.always = Fault("drip", seconds=0.1, size=100)
    client = connect(server.base_url)
    began = time.monotonic()
    vectors = (await client.embed(["kickflip", "ollie", "shuvit"])).vectors
    assert [vector.tolist() for vector in vectors] == [vector_of(text, 8) for text in ("kickflip", "ollie", "shuvit")]
    assert time.monotonic() - began > DEADLINE
    client.deadline_seconds = DEADLINE
    with pytest.raises(Unreachable):
        await client.embed(["kickflip", "ollie", "shuvit"])


async def test_n16_the_proxy_for_https(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """N16: an https address is gone to itself, too: nobody listens there, and the proxy would have answered."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(FakeEmbedder()) as proxy, socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(NotSent):
            await connect(f"https://127.0.0.1:{held.getsockname()[1]}/api/v1").embed(["kickflip"])
        assert proxy.connections == 0


async def test_a_cancelled_call_leaves_the_client_usable(server: FakeEmbedder, connect: Connect) -> None:
    """Stopping in mid-call gives the connection back."""
    client = connect(server.base_url)
    server.script[0] = Fault("stall_body")
    call = asyncio.create_task(client.embed(["kickflip"]))
    await asyncio.to_thread(eventually, lambda: server.calls, "the call")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await client.embed(["kickflip"])
