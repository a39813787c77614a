"""An embedding endpoint for tests: the model that it has, and an embedder in front of it."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Final

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.pin import Model
from tests.support.fake_embedder import vector_of
from tests.support.fast import FastClock
from tests.support.sim_recorders import CrashingProbe, SimHealth, SimMeter
from tests.support.sim_source import WordCounter
from tests.support.sim_stage import FAIR
from tests.support.sim_weather import Weather, dice
from worker.embedding.batcher import BatchingEmbedder
from worker.embedding.lanes import Limits
from worker.errors import Poison
from worker.pipeline.around import Around

KEY: Final = "sk-or-secret-0123456789"
MODEL: Final = Model("openai/text-embedding-3-small", 8, 8192)
PATIENCE: Final = 30.0
"""Seconds for everything that ends by itself, however busy the machine is."""

Connect = Callable[[str], OpenRouterClient]
"""A client for a base URL."""

DEFAULTS: Final = Limits()
GIVE_UP: Final = 60.0  # seconds until a test counts as hanging


class Kit:
    """An embedder in front of an endpoint."""

    def __init__(
        self,
        url: str,
        limits: Limits = DEFAULTS,
        *,
        speed: float = 100.0,
        patience: float | None = None,
    ) -> None:
        self.clock, self.health, self.meter = FastClock(speed), SimHealth(), SimMeter()
        probe = CrashingProbe(Weather(dice("w"), FAIR))
        around = Around(self.clock, self.meter, self.health, probe, Random(7), patience)  # noqa: S311 - repeatable
        self._started: list[asyncio.Task[None]] = []
        self.client = OpenRouterClient(MODEL, KEY, url, deadline_seconds=5.0)
        self.embedder = BatchingEmbedder(self.client, WordCounter(), limits, around)

    async def right(self, texts: Sequence[str]) -> None:
        """Embed texts and see that each has its own vector."""
        async with asyncio.timeout(GIVE_UP):  # `wait_for` of Python 3.11 may lose a cancellation
            results = await self.embedder.embed(texts)
        for text, result in zip(texts, results, strict=True):
            assert not isinstance(result, Poison), result
            assert result.tolist() == vector_of(text, 8)

    async def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until it holds."""
        deadline = time.monotonic() + GIVE_UP
        while not holds():
            assert time.monotonic() < deadline, f"never came: {what}"
            await asyncio.sleep(0.002)  # between two looks; nothing is assumed to take this long

    def start(self, work: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Run it beside the test; it is given up in the end."""
        self._started.append(asyncio.create_task(work))
        return self._started[-1]

    async def close(self) -> None:
        """Give everything back."""
        for task in self._started:
            task.cancel()
        await asyncio.gather(*self._started, return_exceptions=True)
        await self.embedder.close()
        await self.client.close()


class Kits:
    """Makes kits, and gives them up in the end with what was started on them."""

    def __init__(self) -> None:
        self._made: list[Kit] = []

    def __call__(
        self, url: str, limits: Limits = DEFAULTS, *, speed: float = 100.0, patience: float | None = None
    ) -> Kit:
        """One more."""
        self._made.append(Kit(url, limits, speed=speed, patience=patience))
        return self._made[-1]

    async def close(self) -> None:
        """End them all."""
        for kit in self._made:
            await kit.close()
