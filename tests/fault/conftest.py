"""What the tests with killed processes share: an embedder over HTTP, settings, the database as the backend sees it."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.http import Library
from tests.support.endpoint import KEY, MODEL, PATIENCE, Connect, Kits
from tests.support.fake_embedder import FakeEmbedder
from tests.support.secantus import LONG, secantus
from tests.support.served import database, env, fake
from tests.support.serving import serving

__all__ = ["database", "env", "fake"]


@pytest.fixture
def long_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the test's own, whose history holds a backlog; or the one that TEST_ATLAS_URI names."""
    if given := os.environ.get("TEST_ATLAS_URI"):
        yield given
        return
    with secantus(tmp_path_factory.mktemp("secantus"), *LONG) as server:
        yield server.uri


@pytest.fixture
def server() -> Iterator[FakeEmbedder]:
    """A provider on loopback."""
    with serving(FakeEmbedder()) as running:
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


@pytest.fixture
async def make() -> AsyncIterator[Kits]:
    """Embedders in front of an endpoint, closed at the end."""
    kits = Kits()
    yield kits
    await kits.close()
