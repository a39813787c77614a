"""A whole leader of the real worker before the fake MongoDB: real adapters, real pipeline, a fake embedder.

Its waits are hurried, so that backoffs cost a test little; what the wire takes, it takes.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

from brain.knowledge.embedding import Embedded, Purpose, Usage
from brain.knowledge.pin import Model
from tests.support.fake_mongod import FakeMongod
from tests.support.following import until
from tests.support.sim_source import MODEL, PIN, SimSource, WordCounter, vector_of
from tests.support.sim_stage import in_place
from worker.embedding.batcher import BatchingEmbedder, Limits
from worker.model import Leadership
from worker.mongo.change_stream import STALL_SECONDS, MongoChangeStream
from worker.mongo.checkpoints import MongoCheckpoints
from worker.mongo.dead_letters import MongoDeadLetters
from worker.mongo.documents import MongoDocuments
from worker.mongo.driver import Database
from worker.mongo.knowledge import MongoKnowledge
from worker.mongo.lease import MongoLease
from worker.mongo.names import CHECKPOINTS
from worker.mongo.pins import MongoPins, ensure_pinned
from worker.mongo.requests import MongoRequests
from worker.observe.health import HealthBoard
from worker.observe.metrics import PrometheusMeter
from worker.pipeline.around import Around, NoProbe
from worker.pipeline.diff import Target
from worker.pipeline.duties import Papers
from worker.pipeline.leader import Farewell, Leader, Terms, World

TRICKS: Final = "tricks"
HURRY: Final = 10.0


class HurriedClock:
    """Time that runs faster than the world's; the wall stays as it is."""

    def __init__(self, hurry: float = HURRY) -> None:
        self._hurry = hurry

    def now(self) -> datetime:
        """The wall time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds, hurried."""
        return time.monotonic() * self._hurry

    async def sleep(self, seconds: float) -> None:
        """Wait, hurried."""
        await asyncio.sleep(seconds / self._hurry)


class Embedder:
    """Implements EmbeddingClient, and remembers what it was sent; it answers while it is `up`."""

    model = MODEL

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.up = asyncio.Event()
        self.up.set()

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Vectors."""
        self.sent += texts
        await self.up.wait()
        return Embedded(tuple(vector_of(text) for text in texts), Usage(len(texts)))

    async def close(self) -> None:
        """Nothing to give back."""


@dataclass(slots=True)
class Life:
    """One life of the leader."""

    server: FakeMongod
    clock: HurriedClock
    board: HealthBoard
    meter: PrometheusMeter
    client: Embedder
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[Farewell] | None" = None

    def figure(self, name: str) -> float:
        """The sum of the samples whose name (with labels) starts so."""
        lines = self.meter.render().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"freshness_{name}"))

    @property
    def reasons(self) -> str:
        """Why it is not ready, "" when it is."""
        return "; ".join(self.board.snapshot().reasons)

    def checkpoint(self) -> dict[str, Any]:
        """The stored position."""
        return next(row for row in self.server.store.rows(CHECKPOINTS).values() if row["_id"] == "stream")

    async def until_stored(self, *texts: str) -> None:
        """Wait until these texts are stored and no others, and it is ready."""

        def agrees() -> bool:
            self.alive()
            return stored(self.server) == sorted(texts) and not self.reasons

        try:
            await until(agrees, "the texts")
        except AssertionError as error:
            message = f"stored {stored(self.server)}, wanted {sorted(texts)}; not ready: {self.reasons}"
            raise AssertionError(message) from error

    def alive(self) -> None:
        """Raise what ended it, if anything has."""
        if self.task is not None and self.task.done():
            self.task.result()


def stored(server: FakeMongod) -> list[str]:
    """The texts of all chunks."""
    return sorted(row["text"] for row in list(server.store.rows(PIN.collection).values()))


def document(number: int, name: str, *body: str) -> dict[str, Any]:
    """A trick whose parts say `name: body`."""
    return {"_id": number, "name": name, "title": name, "body": list(body), "links": []}


@asynccontextmanager
async def leading(
    server: FakeMongod, database: Database, *, stall: float = STALL_SECONDS, hurry: float = HURRY, kill: bool = False
) -> AsyncGenerator[Life]:
    """A leader at work; stopped at the end, or cut off without a last word."""
    clock, meter = HurriedClock(hurry), PrometheusMeter([TRICKS])
    life = Life(server, clock, HealthBoard(clock), meter, Embedder())
    meter.read_gauge("watermark_age_seconds", life.board.watermark_age)
    around = Around(clock, meter, life.board, NoProbe(), Random(1))  # noqa: S311 - jitter
    embedder = BatchingEmbedder(life.client, WordCounter(), Limits(), around)
    lease = MongoLease(database, clock)
    papers = Papers(
        MongoKnowledge(database, PIN, clock),
        MongoCheckpoints(database),
        MongoDeadLetters(database),
        lease,
        MongoRequests(database, clock),
        MongoPins(database),
    )
    await ensure_pinned(database, Model(PIN.model, PIN.dimensions, 512))
    stream = MongoChangeStream(database, [TRICKS], stall)
    world = World(stream, MongoDocuments(database), papers, embedder)
    leadership = await _lead(lease)
    terms = Terms({TRICKS: SimSource(TRICKS)}, Target(PIN, WordCounter(), {TRICKS: 1}), in_place, window=0.1)
    life.task = asyncio.create_task(Leader(world, terms, leadership, around).serve(life.stop))
    try:
        yield life
        life.alive()
        life.stop.set()
        if kill:
            life.task.cancel()
        await asyncio.wait({life.task})
        if not kill:
            life.task.result()
            await lease.release(leadership)
    finally:
        life.task.cancel()
        await asyncio.wait({life.task})
        await embedder.close()


async def _lead(lease: MongoLease) -> Leadership:
    """The lease; one of a life that was cut off counts as gone, since the process that held it is this one."""
    while True:
        leadership = await lease.acquire()
        if leadership is not None:
            return leadership
        await asyncio.sleep(0.05)  # a real wait: the lease of a killed life runs out by the hurried clock
