"""The embedders of the live generations: one a model, so that its texts share requests, and one gate a provider."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.choose import client_of_model, is_local
from brain.knowledge.pin import Model, Pin
from brain.knowledge.tokens import counter_for, model_named
from worker.config import WorkerSettings
from worker.embedding.batcher import LOCAL_LIMITS, BatchingEmbedder
from worker.embedding.gate import Gate
from worker.embedding.lanes import Limits
from worker.embedding.reasons import OwnReasons
from worker.embedding.spend import Purse
from worker.model import Leadership
from worker.pipeline.around import Around


class Embedders:
    """Made when they are first asked for, kept until `close`. Without a purse spending has no limit."""

    def __init__(self, settings: WorkerSettings, around: Around, purse: Purse | None = None) -> None:
        self._settings = settings
        self._around = around
        self._reasons: Final = {local: OwnReasons(around.health) for local in (True, False)}
        at = {local: replace(around, health=reasons) for local, reasons in self._reasons.items()}
        self._gates: Final[Mapping[bool, tuple[Limits, Gate]]] = {
            True: (LOCAL_LIMITS, Gate(LOCAL_LIMITS, at[True], settings.price)),
            False: (limits := _limits(settings), Gate(limits, at[False], settings.price, purse)),
        }
        self._purse = purse
        self._clients: dict[Model, EmbeddingClient] = {}
        self._embedders: dict[Model, BatchingEmbedder] = {}

    @property
    def embedded(self) -> Mapping[str, int]:
        """What was embedded so far, by any model: `embeddings` (texts), their `tokens`, and `requests`."""
        every = self._embedders.values()
        return {
            "embeddings": sum(embedder.texts_embedded for embedder in every),
            "tokens": sum(embedder.tokens_embedded for embedder in every),
            "requests": sum(embedder.requests_answered for embedder in every),
        }

    def limits(self, pin: Pin) -> Limits:
        """What one request and one minute may hold for the pin's model."""
        return self._limits(pin.model)

    def led_by(self, leadership: Leadership) -> None:
        """Money is spent under that lease from now on."""
        if self._purse is not None:
            self._purse.led_by(leadership)

    def client(self, pin: Pin) -> EmbeddingClient:
        """The client of the pin's model; raises ConfigurationFault when this process cannot embed with it."""
        model = _model(pin)
        if model not in self._clients:
            self._clients[model] = client_of_model(self._settings, model)
        return self._clients[model]

    def embedder(self, pin: Pin) -> BatchingEmbedder:
        """The embedder of the pin's model; raises as `client`."""
        model = _model(pin)
        if model not in self._embedders:
            _, gate = self._gates[is_local(model.name)]
            limits = self._limits(model.name)
            self._embedders[model] = BatchingEmbedder(self.client(pin), counter_for(model), limits, self._around, gate)
        return self._embedders[model]

    def _limits(self, model: str) -> Limits:
        """The provider's; a request of a dearer model may be smaller."""
        limits, _ = self._gates[is_local(model)]
        return limits if is_local(model) else replace(limits, tokens=self._settings.request_tokens(model))

    async def close(self) -> None:
        """Give up what is on its way, and the connections."""
        for embedder in self._embedders.values():
            await embedder.close()
        for reasons in self._reasons.values():
            reasons.close()
        for client in self._clients.values():
            await client.close()


def _model(pin: Pin) -> Model:
    return model_named(pin.model, pin.dimensions)


def _limits(settings: WorkerSettings) -> Limits:
    return Limits(
        texts=settings.batch_texts,
        tokens=settings.batch_tokens,
        concurrency=settings.concurrency,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )
