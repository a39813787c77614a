"""The faults N6, N8, N11, N12 and N15 of the fault list, on the embedding client: what it makes of whole answers.

A real server in a thread, both HTTP libraries.
"""

import json
import logging

import pytest

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.errors import (
    BadVector,
    ConfigurationFault,
    KnowledgeError,
    Malformed,
    PinMismatch,
    Poison,
    Refused,
    Throttled,
    Unavailable,
    WrongWidth,
)
from brain.knowledge.pin import Model
from tests.support.embedder_faults import Fault
from tests.support.endpoint import KEY, MODEL, Connect
from tests.support.fake_embedder import FakeEmbedder, vector_of
from tests.support.serving import serving


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
        Fault("body", body='{"error":{"code":"NaN"},"data":NaN}'),
        *(
            Fault("patch", change=change)
            for change in ("drop", "extra", "narrow", "nan", "infinite", "huge", "zero", "text", "same_index")
        ),
    ],
    ids=lambda fault: str(fault.change or fault.body[:20]),
)
async def test_n06_answers_that_are_wrong(server: FakeEmbedder, connect: Connect, fault: Fault) -> None:
    """N6: nothing of a wrong answer is used; asking again may help."""
    client = connect(server.base_url)
    server.script[0] = fault
    kinds = {"narrow": WrongWidth, "nan": BadVector, "infinite": BadVector, "huge": BadVector, "zero": BadVector}
    with pytest.raises(Malformed) as caught:
        await client.embed(["kickflip", "ollie"])
    assert isinstance(caught.value, kinds.get(fault.change, Malformed))
    assert len((await client.embed(["kickflip", "ollie"])).vectors) == 2


async def test_n06_order_comes_from_the_index(server: FakeEmbedder, connect: Connect) -> None:
    """N6: an answer in another order is put right; gzip and a missing usage are no fault."""
    client = connect(server.base_url)
    server.script |= {0: Fault("patch", change="reverse"), 1: Fault("gzip"), 2: Fault("patch", change="no_usage")}
    for _ in range(3):
        vectors = (await client.embed(["kickflip", "ollie"])).vectors
        assert [v.tolist() for v in vectors] == [vector_of("kickflip", 8), vector_of("ollie", 8)]


async def test_n15_another_model_is_a_pin_mismatch(server: FakeEmbedder, connect: Connect) -> None:
    """N15 at the client: another model's name is never let through, nor none; a missing vendor prefix is."""
    client = connect(server.base_url)
    server.script |= {0: Fault("patch", change="model"), 1: Fault("patch", change="no_model")}
    with pytest.raises(PinMismatch, match="another-model"):
        await client.embed(["kickflip"])
    with pytest.raises(Malformed, match="without the name of the model"):
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
async def test_n08_retry_after(
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
        (200, _error("429"), {}, Throttled),
        (200, _error("0429"), {}, Malformed),
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
    """N11: typed by status, or by what the body says inside a success; asked once only."""
    client = connect(server.base_url)
    server.always = Fault("status", status=status, body=body, headers=headers)
    with pytest.raises(KnowledgeError) as caught:
        await client.embed(["kickflip"])
    assert type(caught.value) is error
    assert server.calls == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_n12_redirects_are_not_followed(server: FakeEmbedder, connect: Connect, status: int) -> None:
    """N12: the other host sees nothing at all, so no key."""
    with serving(FakeEmbedder()) as other:
        server.always = Fault("status", status=status, headers={"Location": f"{other.base_url}/embeddings"})
        with pytest.raises(Malformed, match="redirect"):
            await connect(server.base_url).embed(["kickflip"])
        assert other.connections == 0


@pytest.mark.parametrize(
    "reported", [{"cost": 0.5}, {"cost": 0.1, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.4}}]
)
async def test_the_cost_is_what_is_reported(
    server: FakeEmbedder, connect: Connect, reported: dict[str, object]
) -> None:
    """With a key of one's own the upstream's price counts too; odd figures count as none."""
    data = [{"index": 0, "embedding": vector_of("kickflip", 8)}]
    answer = {"model": MODEL.name, "data": data}
    server.always = Fault("body", body=json.dumps({**answer, "usage": {"total_tokens": 3, **reported}}))
    usage = (await connect(server.base_url).embed(["kickflip"])).usage
    assert (usage.tokens, usage.cost_usd) == (3, 0.5)
    server.always = Fault("body", body=json.dumps({**answer, "usage": {"total_tokens": -3, "cost": "free"}}))
    usage = (await connect(server.base_url).embed(["kickflip"])).usage
    assert (usage.tokens, usage.cost_usd) == (0, None)


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
