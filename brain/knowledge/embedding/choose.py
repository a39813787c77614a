"""Which embedding client the settings ask for."""

from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.http import Library
from brain.knowledge.settings import KnowledgeSettings
from brain.knowledge.tokens import model_named


def embedding_client(settings: KnowledgeSettings, library: Library | None = None) -> EmbeddingClient:
    """The client of `EMBEDDING_PROVIDER`; the clients are imported here, as each pulls in what the other never needs.

    Raises ConfigurationFault when the key is missing or the extra `local` is not installed.
    """
    if settings.embedding_provider == "local":
        from brain.knowledge.embedding.local import LocalClient  # noqa: PLC0415 see above

        return LocalClient()
    from brain.knowledge.embedding.openrouter import OpenRouterClient  # noqa: PLC0415 see above

    if settings.openrouter_api_key is None:
        message = "OPENROUTER_API_KEY is not set: create one under openrouter.ai/keys, or set EMBEDDING_PROVIDER=local"
        raise ConfigurationFault(message)
    return OpenRouterClient(
        model_named(settings.embedding_model, settings.embedding_dimensions),
        settings.openrouter_api_key.get_secret_value(),
        settings.openrouter_base_url,
        library=library,
    )
