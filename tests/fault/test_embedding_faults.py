"""The faults N1-N8, N11-N14 and N16 of the fault list, on the embedding client: real sockets, both HTTP libraries.

A client never retries (but for N13) and never waits past its deadline; what it raises tells the caller what to do.
"""

import asyncio
import json
import logging
import resource
import socket
import time
from collections.abc import AsyncIterator, Callable
from typing import cast

import pytest

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.errors import (
    ConfigurationFault,
    KnowledgeError,
    Malformed,
    PinMismatch,
    Poison,
    Refused,
    Retryable,
    Throttled,
    Unavailable,
    Unreachable,
)
from brain.knowledge.http import Library
from brain.knowledge.pin import Model
from tests.support.fake_embedder import FakeEmbedder, Fault, gzip_bomb, vector_of

KEY = "sk-or-secret-0123456789"
MODEL = Model("openai/text-embedding-3-small", 8, 8192)
DEADLINE = 0.4  # seconds, for the stalls, which never end by themselves
PATIENCE = 30.0  # seconds, for everything that ends by itself, however busy the machine is

Connect = Callable[[str], OpenRouterClient]


@pytest.fixture
async def server() -> AsyncIterator[FakeEmbedder]:
    """A provider on loopback."""
    async with FakeEmbedder() as running:
        yield running


@pytest.fixture(params=["httpx2", "httpx"])
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Connect]:
    """A client for a base URL, closed at the end."""
    clients: list[OpenRouterClient] = []

    def make(base_url: str) -> OpenRouterClient:
        library = cast("Library", request.param)
        clients.append(OpenRouterClient(MODEL, KEY, base_url, library=library, deadline_seconds=PATIENCE))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


async def test_n1_nobody_listens(connect: Connect) -> None:
    """N1: a refused connection is Unreachable, each time, and says where it went."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound and not listening: the port stays refused
        client = connect(f"http://127.0.0.1:{held.getsockname()[1]}/api/v1")
        for _ in range(2):
            with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
                await client.embed(["kickflip"])


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("reset_before", Unreachable),
        ("reset_inside", Malformed),
        ("short", Malformed),
        ("stall_accept", Unreachable),
        ("stall_headers", Unreachable),
        ("stall_body", Unreachable),
        ("drip", Unreachable),
        ("endless", Malformed),
        ("gzip_bomb", Malformed),
        ("big_header", Unreachable),
    ],
)
async def test_n2_to_n7_broken_connections(
    server: FakeEmbedder, connect: Connect, kind: str, error: type[KnowledgeError]
) -> None:
    """N2, N3, N4, N5, N7, N14: retryable, within the deadline, in bounded memory, and the next call works."""
    client = connect(server.base_url)
    server.script[0] = Fault(kind)
    if error is Unreachable:
        client.deadline_seconds = DEADLINE
    gzip_bomb()  # made beforehand, so that its maker's memory does not count
    before = _peak_megabytes()
    started = time.monotonic()
    with pytest.raises(error) as caught:
        await client.embed(["kickflip"])
    assert time.monotonic() - started < client.deadline_seconds + 5.0
    client.deadline_seconds = PATIENCE
    assert isinstance(caught.value, Retryable)
    assert _peak_megabytes() - before < 64  # the bomb unpacks to 128
    assert (await client.embed(["kickflip"])).vectors[0].tolist() == vector_of("kickflip", 8)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("body", body="<html><body>Bad gateway</body></html>", headers={"Content-Type": "text/html"}),
        Fault("body", body=""),
        Fault("body", body='{"object":"list","data":[{"index":0,"emb'),
        Fault("body", body="[" * 100_000),
        Fault("body", body="[1,2]"),
        Fault("body", body="{}"),
        Fault("body", body='{"data":null,"model":null}'),
        Fault("body", body='{"data":[1,2]}'),
        Fault("body", body='{"data":[],"error":{"message":"?"}}'),
        *(
            Fault("patch", change=change)
            for change in ("drop", "extra", "narrow", "nan", "infinite", "huge", "zero", "text", "same_index")
        ),
    ],
    ids=lambda fault: str(fault.change or fault.body[:20]),
)
async def test_n6_answers_that_are_wrong(server: FakeEmbedder, connect: Connect, fault: Fault) -> None:
    """N6: nothing of a wrong answer is used; asking again may help."""
    client = connect(server.base_url)
    server.script[0] = fault
    with pytest.raises(Malformed):
        await client.embed(["kickflip", "ollie"])
    assert len((await client.embed(["kickflip", "ollie"])).vectors) == 2


async def test_n6_order_comes_from_the_index(server: FakeEmbedder, connect: Connect) -> None:
    """N6: an answer in another order is put right; gzip and a missing usage are no fault."""
    client = connect(server.base_url)
    server.script |= {0: Fault("patch", change="reverse"), 1: Fault("gzip"), 2: Fault("patch", change="no_usage")}
    for _ in range(3):
        vectors = (await client.embed(["kickflip", "ollie"])).vectors
        assert [v.tolist() for v in vectors] == [vector_of("kickflip", 8), vector_of("ollie", 8)]


async def test_another_model_is_a_pin_mismatch(server: FakeEmbedder, connect: Connect) -> None:
    """N15 at the client: another model's name is never let through; a missing vendor prefix, or name, is."""
    client = connect(server.base_url)
    server.script |= {0: Fault("patch", change="model"), 1: Fault("patch", change="no_model")}
    with pytest.raises(PinMismatch, match="another-model"):
        await client.embed(["kickflip"])
    await client.embed(["kickflip"])
    server.model = "Text-Embedding-3-Small"
    await client.embed(["kickflip"])


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("2", 2, 2),
        ("0", 0, 0),
        ("999999", 60, 60),
        ("9" * 400, 60, 60),
        ("Fri, 31 Dec 2999 23:59:59 GMT", 60, 60),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0, 0),
        ("-5", None, None),
        ("soon", None, None),
        ("nan", None, None),
        ("", None, None),
    ],
)
async def test_n8_retry_after(
    server: FakeEmbedder, connect: Connect, header: str, low: float | None, high: float | None
) -> None:
    """N8: seconds, dates and nonsense; never more than a minute."""
    client = connect(server.base_url)
    server.always = Fault("status", status=429, headers={"Retry-After": header})
    with pytest.raises(Throttled) as caught:
        await client.embed(["kickflip"])
    if low is None or high is None:
        assert caught.value.retry_after is None
    else:
        assert caught.value.retry_after is not None
        assert low <= caught.value.retry_after <= high


def _error(code: object, error_type: str | None = None, message: str = "no") -> str:
    metadata = {"metadata": {"error_type": error_type}} if error_type else {}
    return json.dumps({"error": {"code": code, "message": message, **metadata}})


@pytest.mark.parametrize(
    ("status", "body", "headers", "error"),
    [
        (401, _error(401), {}, Refused),
        (402, _error(402), {}, Refused),
        (402, _error(402), {"Retry-After": "3"}, Throttled),
        (403, _error(403), {}, Refused),
        (403, _error(403, "content_policy_violation"), {}, Poison),
        (400, _error(400), {}, Poison),
        (400, _error(400, message="nope/x is not a valid model ID"), {}, ConfigurationFault),
        (404, "<html>", {}, ConfigurationFault),
        (405, "", {}, ConfigurationFault),
        (413, _error(413), {}, Poison),
        (422, _error(422), {}, Poison),
        (408, "", {}, Unavailable),
        (500, "<html>", {}, Unavailable),
        (502, "", {}, Unavailable),
        (503, _error(503), {}, Unavailable),
        (503, _error(503), {"Retry-After": "1"}, Throttled),
        (504, "", {}, Unavailable),
        (524, "", {}, Unavailable),
        (529, _error(529, "provider_overloaded"), {}, Unavailable),
        (200, _error(401), {}, Refused),
        (200, _error(429), {}, Throttled),
        (200, _error("x", "provider_unavailable"), {}, Unavailable),
        (200, _error(502), {}, Unavailable),
        (200, _error(None, "context_length_exceeded"), {}, Poison),
        (200, _error(None), {}, Malformed),
        (200, '{"error":"plain words"}', {}, Malformed),
    ],
)
async def test_n11_every_status_has_its_type(
    server: FakeEmbedder,
    connect: Connect,
    status: int,
    body: str,
    headers: dict[str, str],
    error: type[KnowledgeError],
) -> None:
    """N11 and providers.md A5: typed by status, or by what the body says inside a success; asked once only."""
    client = connect(server.base_url)
    server.always = Fault("status", status=status, body=body, headers=headers)
    with pytest.raises(KnowledgeError) as caught:
        await client.embed(["kickflip"])
    assert type(caught.value) is error
    assert server.calls == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_n12_redirects_are_not_followed(server: FakeEmbedder, connect: Connect, status: int) -> None:
    """N12: the other host sees nothing at all, so no key."""
    async with FakeEmbedder() as other:
        server.always = Fault("status", status=status, headers={"Location": f"{other.base_url}/embeddings"})
        with pytest.raises(Malformed, match="redirect"):
            await connect(server.base_url).embed(["kickflip"])
        assert other.connections == 0


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
    await client.embed(["kickflip"])
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
    async with FakeEmbedder() as proxy:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await connect(server.base_url).embed(["kickflip"])
        assert proxy.connections == 0
    assert not server.received[0].proxied


async def test_what_is_sent(server: FakeEmbedder, connect: Connect) -> None:
    """Strings, plain floats, the width; the key in its header and nowhere else."""
    await connect(server.base_url).embed(["kickflip"])
    (call,) = server.received
    assert call.path == "/api/v1/embeddings"
    assert call.payload == {"model": MODEL.name, "input": ["kickflip"], "encoding_format": "float", "dimensions": 8}
    assert call.headers["authorization"] == f"Bearer {KEY}"


async def test_width_is_sent_only_where_it_is_understood(server: FakeEmbedder) -> None:
    """Models other than text-embedding-3 refuse the parameter."""
    client = OpenRouterClient(Model("baai/bge-m3", 8, 8192), KEY, server.base_url)
    await client.embed(["kickflip"])
    await client.close()
    assert "dimensions" not in server.received[0].payload


async def test_no_secret_and_no_text_in_errors_or_logs(
    server: FakeEmbedder, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """A provider that quotes the key and the text does not get them into our messages; the libraries log nothing."""
    caplog.set_level(logging.DEBUG)
    server.always = Fault("status", status=401, body=_error(401, message=f"bad key {KEY} for 'my private text'"))
    with pytest.raises(Refused) as caught:
        await connect(server.base_url).embed(["my private text"])
    told = f"{caught.value!r} {caplog.text}"
    assert KEY not in told
    assert "private" not in told


async def test_a_cancelled_call_leaves_the_client_usable(server: FakeEmbedder, connect: Connect) -> None:
    """Stopping in mid-call gives the connection back."""
    client = connect(server.base_url)
    server.script[0] = Fault("stall_body")
    call = asyncio.create_task(client.embed(["kickflip"]))
    await server.arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await client.embed(["kickflip"])


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
