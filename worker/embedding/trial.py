"""One text, before a whole generation: a model that does not answer would hold up every edit, the live ones too."""

from typing import Final

from brain.knowledge.embedding import EmbeddingClient
from worker.errors import Fatal, PinRefused, Poison

_TEXT: Final = "ollie"  # a token or two


async def try_model(client: EmbeddingClient) -> None:
    """Embed one word, past every limit and budget: it costs less than a millionth of a dollar.

    Raises PinRefused with the provider's reason, or Retryable where the provider cannot answer now.
    """
    try:
        await client.embed([_TEXT])
    except (Fatal, Poison) as error:
        message = f"{client.model.name} ({client.model.dimensions}) does not answer, and nothing was begun: {error}"
        raise PinRefused(message) from error
