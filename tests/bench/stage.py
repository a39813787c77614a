"""What the benchmarks share: a production-flagged embedded server, a whole worker in this process, and documents."""

import asyncio
import hashlib
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
from pymongo import AsyncMongoClient

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row, Target
from brain.knowledge.embedding import Embedded, EmbeddingClient, Purpose, Usage
from brain.knowledge.pin import MINILM, OPENAI_SMALL, Model
from brain.knowledge.settings import load
from brain.knowledge.tokens import counter_for
from worker.app import Connection, close, compose, quiet_surroundings
from worker.clock import SystemClock
from worker.config import PREFIX, WorkerSettings
from worker.embedded import EmbeddedServer
from worker.embedding.batcher import BatchingEmbedder
from worker.embedding.lanes import Limits
from worker.model import Outcome
from worker.mongo.driver import connected
from worker.observe.metrics import PrometheusMeter
from worker.parts import App

_WORDS: Final = (
    *("pop", "the", "tail", "slide", "your", "front", "foot", "up", "and", "out", "keep", "shoulders", "level", "over"),
    *("board", "look", "where", "you", "want", "to", "land", "bend", "knees", "before", "take", "off", "catch", "it"),
    *("with", "back", "first", "roll", "away", "slowly", "commit", "practise", "on", "grass", "wear", "a", "helmet"),
    *("lean", "into", "turn", "press", "heel", "edge", "spin", "from", "hips", "grab", "between", "bindings"),
)


@contextmanager
def server() -> Generator[str]:
    """An embedded server of our own with the flags of production; gives its URI."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        running = EmbeddedServer.start_or_join(Path(folder))
        try:
            yield running.uri
        finally:
            running.close()


def sentence(rng: Random, words: int) -> str:
    """So many words of the trade."""
    return " ".join(rng.choices(_WORDS, k=words))


def tricks(count: int, seed: int = 1, words: int = 60) -> list[Row]:
    """Documents of the trick catalogue, each of one chunk and no two alike."""
    rng = Random(seed)  # noqa: S311 - sample text
    return [
        {
            "_id": f"trick-{number:05}",
            "name": f"Trick {number}",
            "category": "Skateboarding",
            "difficulty": "Beginner",
            "description": f"{sentence(rng, words)}. Number {seed}-{number}.",
        }
        for number in range(count)
    ]


def vector_of(text: str, dimensions: int) -> Vector:
    """A vector that depends on the text alone; cheap, and not of unit length."""
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).standard_normal(dimensions, dtype=np.float32)


class InstantClient:
    """An embedding client in this process that answers at once, or after `latency` seconds."""

    def __init__(self, model: Model = OPENAI_SMALL, latency: float = 0.0) -> None:
        self._model = model
        self._latency = latency
        self.calls = 0
        self.texts = 0

    @property
    def model(self) -> Model:
        """The model whose width the vectors have."""
        return self._model

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Vectors of these texts."""
        del purpose
        self.calls += 1
        self.texts += len(texts)
        if self._latency:
            await asyncio.sleep(self._latency)
        vectors = tuple(vector_of(text, self._model.dimensions) for text in texts)
        return Embedded(vectors, Usage(tokens=sum(len(text) // 4 for text in texts)))

    async def close(self) -> None:
        """Nothing to give back."""


class CountingMeter(PrometheusMeter):
    """The production meter, which also tells when so many changes have an outcome."""

    def __init__(self, sources: Sequence[str]) -> None:
        super().__init__(sources)
        self.settled_count = 0
        self._goal = 0
        self._reached = asyncio.Event()

    def settled(self, source: str, outcome: Outcome, lag: float | None) -> None:
        """Count a change with its outcome."""
        super().settled(source, outcome, lag)
        self.settled_count += 1
        if self.settled_count >= self._goal:
            self._reached.set()

    async def until(self, goal: int) -> None:
        """Wait until so many changes have their outcome."""
        self._goal = goal
        self._reached.clear()
        if self.settled_count < goal:
            await self._reached.wait()


@dataclass(frozen=True, slots=True)
class Stage:
    """A worker in this process over one database, and a plain client of the same database."""

    app: App
    meter: CountingMeter
    plain: AsyncMongoClient[Row]

    @property
    def database(self) -> Any:  # noqa: ANN401 - the plain driver's own
        """The database through the plain client, with the driver's defaults."""
        return self.plain[self.app.database.name]

    async def lead(self, goal: int) -> float:
        """Lead until so many changes in all have their outcome; the seconds until then, start included, drain not."""
        return await self._lead_until(self.meter.until(goal))

    async def first_scan(self) -> float:
        """Lead until every first scan is done, so that a position is stored; the seconds."""
        return await self._lead_until(self._scanned())

    async def _lead_until(self, reached: Coroutine[object, object, None]) -> float:
        await self.app.warm_up()
        leadership = await self.app.lease.acquire()
        assert leadership is not None
        stop = asyncio.Event()
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.app.leader(leadership).serve(stop))
            await reached
            seconds = time.monotonic() - began
            stop.set()
        await self.app.release(leadership)
        return seconds

    async def _scanned(self) -> None:
        while True:
            scans = await self.app.world.papers.checkpoints.scans()
            if scans and all(scan.done for scan in scans.values()):
                return
            await asyncio.sleep(0.1)


@asynccontextmanager
async def stage(
    uri: str, client: EmbeddingClient, limits: Limits | None = None, sources: str = "trickipedia"
) -> AsyncGenerator[Stage]:
    """Every real part of the worker over a fresh database, around this embedding client; the server's end drops it."""
    name = f"bench_{uuid.uuid4().hex[:10]}"
    environ = {
        "ATLAS_URI": uri,
        "ATLAS_DB": name,
        "OPENROUTER_API_KEY": "unused",
        "EMBEDDING_PROVIDER": "local" if client.model == MINILM else "openrouter",
        "EMBEDDING_MODEL": client.model.name,
        "EMBEDDING_DIMENSIONS": str(client.model.dimensions),
        "WORKER_SOURCES": sources,
    }
    settings = load(WorkerSettings, environ, PREFIX, embedded=False)
    plain: AsyncMongoClient[Row] = AsyncMongoClient(uri)
    async with connected(Target(uri, name, embedded=True), "pymongo") as database:
        meter = CountingMeter(settings.sources)
        around = replace(quiet_surroundings(settings), meter=meter, clock=SystemClock(), patience=None)
        app = await compose(Connection(settings, database, None, uri), around)
        embedder = BatchingEmbedder(client, counter_for(client.model), limits or Limits(), around)
        app = replace(app, world=replace(app.world, embedder=embedder))
        try:
            yield Stage(app, meter, plain)
        finally:
            await embedder.close()
            await close(app)
            await plain.close()
