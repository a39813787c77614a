"""Which client embeds the queries of a pin: the one that was given, or always the one that the pin names."""

from collections.abc import Callable
from typing import Protocol

from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.choose import client_of_pin
from brain.knowledge.errors import PinMismatch
from brain.knowledge.pin import Pin
from brain.knowledge.settings import KnowledgeSettings


class Clients(Protocol):
    """The clients that queries are embedded with."""

    def of(self, pin: Pin) -> EmbeddingClient:
        """The client of this pin's model; raises PinMismatch when there may be none, ConfigurationFault."""
        ...


class OneClient:
    """One client, for the pins of its own model. Who made it closes it."""

    def __init__(self, client: EmbeddingClient) -> None:
        self._client = client

    def of(self, pin: Pin) -> EmbeddingClient:
        """The client; raises PinMismatch for a pin of another model."""
        model = self._client.model
        if (model.name, model.dimensions) != (pin.model, pin.dimensions):
            message = (
                f"the chunks are embedded with {pin.model} ({pin.dimensions}) and this program with {model.name}"
                f" ({model.dimensions}): set EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS to the pin's"
            )
            raise PinMismatch(message)
        return self._client


class PinnedClients:
    """The client that each pin names, made when it is first asked for: so a long-lived reader follows a switch.

    What the settings name by word they still forbid otherwise (`choose.client_of_pin`).
    """

    def __init__(
        self,
        settings: KnowledgeSettings,
        make: Callable[[KnowledgeSettings, Pin], EmbeddingClient] = client_of_pin,
    ) -> None:
        self._settings = settings
        self._make = make
        self._made: dict[tuple[str, int], EmbeddingClient] = {}

    def of(self, pin: Pin) -> EmbeddingClient:
        """The client of the pin's model."""
        model = pin.model, pin.dimensions
        if model not in self._made:
            self._made[model] = self._make(self._settings, pin)
        return self._made[model]

    async def close(self) -> None:
        """Close every client that was made."""
        for client in self._made.values():
            await client.close()
