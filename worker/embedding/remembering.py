"""A client that embeds the same query once: for whoever asks one question again and again."""

from collections.abc import Sequence

from brain.knowledge.embedding import Embedded, EmbeddingClient, Purpose
from brain.knowledge.pin import Model


class Remembering:
    """Implements `EmbeddingClient` over another one, for a handful of questions."""

    def __init__(self, client: EmbeddingClient) -> None:
        self._client = client
        self._known: dict[tuple[str, ...], Embedded] = {}

    @property
    def model(self) -> Model:
        """The other client's model."""
        return self._client.model

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Embed the texts, the second time from memory."""
        asked = (purpose, *texts)
        if asked not in self._known:
            self._known[asked] = await self._client.embed(texts, purpose)
        return self._known[asked]

    async def close(self) -> None:
        """Leave the other client open: it belongs to somebody else."""
