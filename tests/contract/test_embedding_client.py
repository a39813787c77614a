"""What every embedding client promises: one suite over the local model and over the HTTP client with both libraries."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import numpy as np
import pytest

from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.local import LocalClient
from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.errors import Poison
from brain.knowledge.http import Library
from brain.knowledge.pin import Model
from tests.support.fake_embedder import FakeEmbedder

TEXTS = ["How to kickflip on flat ground.", "Snow in the terrain park", "an ollie", "Überdrehter Sprung 🛹 雪"]


@pytest.fixture(params=["local", "httpx2", "httpx"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[EmbeddingClient]:
    """Each client in turn; the HTTP ones against a real server on loopback."""
    if request.param == "local":
        local = LocalClient()
        yield local
        await local.close()
        return
    async with FakeEmbedder() as server:
        model = Model("openai/text-embedding-3-small", 16, 8192)
        remote = OpenRouterClient(model, "sk-test", server.base_url, library=cast("Library", request.param))
        yield remote
        await remote.close()


async def test_vectors_come_in_the_order_of_the_texts(client: EmbeddingClient) -> None:
    """A text has the same vector alone and among others, at its own place."""
    together = await client.embed(TEXTS)
    alone = [(await client.embed([text])).vectors[0] for text in TEXTS]
    assert len(together.vectors) == len(TEXTS)
    for one, other in zip(together.vectors, alone, strict=True):
        assert np.array_equal(one, other)


async def test_vectors_are_float32_finite_unit_and_of_the_width(client: EmbeddingClient) -> None:
    """The shape that is stored."""
    for vector in (await client.embed(TEXTS)).vectors:
        assert vector.dtype == np.float32
        assert vector.shape == (client.model.dimensions,)
        assert np.isfinite(vector).all()
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


async def test_questions_and_documents_meet(client: EmbeddingClient) -> None:
    """The models we pin read both alike."""
    document = (await client.embed(["kickflip"], "document")).vectors[0]
    query = (await client.embed(["kickflip"], "query")).vectors[0]
    assert np.array_equal(document, query)


async def test_usage_is_told(client: EmbeddingClient) -> None:
    """Tokens and a price."""
    usage = (await client.embed(TEXTS)).usage
    assert usage.tokens > 0
    assert usage.cost_usd is not None
    assert usage.cost_usd >= 0


async def test_no_texts_no_vectors(client: EmbeddingClient) -> None:
    """An empty call costs nothing."""
    embedded = await client.embed([])
    assert embedded.vectors == ()
    assert embedded.usage.tokens == 0


@pytest.mark.parametrize("text", ["", " \n\t", "half a pair \ud83d"])
async def test_what_no_model_can_take_is_poison(client: EmbeddingClient, text: str) -> None:
    """Blank texts and broken Unicode are named by their place and never quoted."""
    with pytest.raises(Poison, match="text 2 of 2"):
        await client.embed(["fine", text])


async def test_calls_run_side_by_side(client: EmbeddingClient) -> None:
    """Concurrent calls get their own answers."""
    answers = await asyncio.gather(*(client.embed([text]) for text in TEXTS * 3))
    assert len({answer.vectors[0].tobytes() for answer in answers}) == len(TEXTS)


async def test_closing_twice_is_fine(client: EmbeddingClient) -> None:
    """A shutdown may come from two sides."""
    await client.embed(["kickflip"])
    await client.close()
    await client.close()
