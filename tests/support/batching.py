"""A batching embedder over a scripted client, on the virtual clock."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from brain.knowledge.embedding import Embedded, Purpose, Usage
from tests.support import virtual
from tests.support.sim_recorders import CrashingProbe, SimHealth, SimMeter
from tests.support.sim_source import MODEL, WordCounter, vector_of
from tests.support.sim_stage import FAIR
from tests.support.sim_weather import Weather, dice
from worker.embedding.batcher import BatchingEmbedder
from worker.embedding.lanes import Limits
from worker.errors import Poison
from worker.pipeline.around import Around

WORDS: Final = [f"text {number}" for number in range(10)]


class Client:
    """Implements EmbeddingClient: answers after a second, or as scripted by the number of the call."""

    model = MODEL

    def __init__(self) -> None:
        self.calls: list[tuple[float, list[str]]] = []
        self.faults: dict[int, Exception] = {}
        self.poison: Callable[[str], bool] = lambda _text: False
        self.out = self.most = 0

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Vectors, or the fault of this call."""
        number = len(self.calls)
        self.calls.append((round(asyncio.get_running_loop().time() - virtual.START, 3), list(texts)))
        self.out += 1
        self.most = max(self.most, self.out)
        try:
            await asyncio.sleep(1)
        finally:
            self.out -= 1
        if fault := self.faults.get(number, self.faults.get(-1)):
            raise fault
        if any(map(self.poison, texts)):
            message = "one of these"
            raise Poison(message)
        return Embedded(tuple(map(vector_of, texts)), Usage(len(texts)))

    async def close(self) -> None:
        """Nothing to give back."""


class Kit:
    """An embedder with what it leans on."""

    def __init__(
        self,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        patience: float | None = None,
        client: Client | None = None,
    ) -> None:
        self.client, self.health, self.meter = client or Client(), SimHealth(), SimMeter()
        probe = CrashingProbe(Weather(dice("w"), FAIR))
        around = Around(virtual.VirtualClock(), self.meter, self.health, probe, dice("batcher"), patience)
        self.embedder = BatchingEmbedder(self.client, WordCounter(), limits, around)

    async def right(self, texts: Sequence[str]) -> None:
        """Embed texts and see that each has its own vector."""
        results = await self.embedder.embed(texts)
        for text, result in zip(texts, results, strict=True):
            assert not isinstance(result, Poison)
            assert np.array_equal(result, vector_of(text))
