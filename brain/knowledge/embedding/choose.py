"""Which embedding client: the one of a pin, or of the settings where nothing is pinned yet.

The pin decides, since vectors of two models must never meet. EMBEDDING_PROVIDER, EMBEDDING_MODEL and
EMBEDDING_DIMENSIONS say what the first pin of a database is; after that each of them may stay unset, and one that is
set forbids every pin that says otherwise (PinMismatch). So a program that has none of them set follows a switch.
"""

from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.errors import ConfigurationFault, PinMismatch
from brain.knowledge.http import Library
from brain.knowledge.pin import MINILM, Model, Pin
from brain.knowledge.settings import KnowledgeSettings
from brain.knowledge.tokens import model_named


def client_of_pin(settings: KnowledgeSettings, pin: Pin) -> EmbeddingClient:
    """The client of a pin's model; see `client_of_model`. Raises PinMismatch when the settings forbid the pin."""
    if forbids(settings, pin):
        message = (
            f"the chunks are embedded with {pin.model} ({pin.dimensions}) and the settings name another model: unset "
            "EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS to follow the chunks, or set them to that"
        )
        raise PinMismatch(message)
    return client_of_model(settings, model_named(pin.model, pin.dimensions))


def client_of_model(settings: KnowledgeSettings, model: Model, library: Library | None = None) -> EmbeddingClient:
    """The client of a model: in this process for MiniLM, else at OPENROUTER_BASE_URL.

    The clients are imported here, as each pulls in what the other never needs. Raises ConfigurationFault when the key
    is missing or the extra `local` is not installed.
    """
    if is_local(model.name):
        from brain.knowledge.embedding.local import LocalClient  # noqa: PLC0415 see above

        return LocalClient()
    from brain.knowledge.embedding.openrouter import OpenRouterClient  # noqa: PLC0415 see above

    if settings.openrouter_api_key is None:
        message = "OPENROUTER_API_KEY is not set: create one under openrouter.ai/keys, or set EMBEDDING_PROVIDER=local"
        raise ConfigurationFault(message)
    key = settings.openrouter_api_key.get_secret_value()
    return OpenRouterClient(model, key, settings.openrouter_base_url, library=library)


def model_of(settings: KnowledgeSettings) -> Model:
    """The model that the settings name, by word or by default."""
    return model_named(settings.embedding_model, settings.embedding_dimensions)


def is_local(model: str) -> bool:
    """Whether the model of this name runs in this process."""
    return model == MINILM.name


def provider_of(model: str) -> str:
    """Who embeds with the model of this name, as EMBEDDING_PROVIDER says it."""
    return "local" if is_local(model) else "openrouter"


def forbids(settings: KnowledgeSettings, pin: Pin) -> bool:
    """Whether one of the settings that a person set says otherwise than the pin; a default forbids nothing."""
    agrees = {
        "embedding_provider": settings.embedding_provider == provider_of(pin.model),
        "embedding_model": settings.embedding_model == pin.model,
        "embedding_dimensions": settings.embedding_dimensions == pin.dimensions,
    }
    return any(name in settings.model_fields_set and not same for name, same in agrees.items())
