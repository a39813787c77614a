"""What a command works with: every part, put together by `worker.app`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.choose import is_local
from brain.knowledge.pin import Pin
from brain.knowledge.tokens import counter_for, model_named
from worker.audit.canary import Canary
from worker.audit.compare import Comparer
from worker.audit.verify import Auditor
from worker.clock import Clock
from worker.config import WorkerSettings
from worker.embedded import EmbeddedServer
from worker.embedding.embedders import Embedders
from worker.errors import ConfigurationFault, Retryable
from worker.generations import Generations
from worker.model import Leadership, Scan
from worker.mongo.counts import count_source
from worker.mongo.driver import Database
from worker.mongo.knowledge import MongoKnowledge
from worker.mongo.lease import MongoLease
from worker.mongo.requests import MongoRequests
from worker.pipeline.around import Around
from worker.pipeline.diff import Target as ChunkTarget
from worker.pipeline.leader import Leader, Terms, World
from worker.pipeline.shape import Shaper
from worker.pipeline.together import within
from worker.ports import KnowledgeStore
from worker.sources.registry import SOURCES

RELEASE_SECONDS: Final = 1.0
"""Seconds that giving the lease back may take."""


@dataclass(frozen=True, slots=True)
class App:
    """Everything that a command works with."""

    settings: WorkerSettings
    database: Database
    server: EmbeddedServer | None
    shown_uri: str
    generations: Generations
    pinned: bool
    world: World
    terms: Terms
    embedders: Embedders
    lease: MongoLease
    requests: MongoRequests
    around: Around
    canary: Canary

    @property
    def clock(self) -> Clock:
        """The clock of everything."""
        return self.around.clock

    @property
    def pin(self) -> Pin:
        """The active pin."""
        return self.generations.active

    @property
    def client(self) -> EmbeddingClient:
        """The client of the active pin's model."""
        return self.embedders.client(self.pin)

    @property
    def embedded(self) -> Mapping[str, int]:
        """What this process had embedded so far: `embeddings` (texts), their `tokens`, and `requests`."""
        return self.embedders.embedded

    def leader(self, leadership: Leadership, watch: Callable[[Scan], None] = lambda _scan: None) -> Leader:
        """The leader under a lease that was taken; money is spent under that lease from now on."""
        self.embedders.led_by(leadership)
        return Leader(self.world, self.terms, leadership, self.around, watch)

    def comparer(self, pin: Pin | None = None) -> Comparer:
        """What compares the documents of this database with what is stored of them in a generation (the active one)."""
        world, terms, target = self.world, self.terms, self._target(pin)
        shaper = Shaper(world.documents, terms.sources, target.tokens, self.clock, terms.offload)
        return Comparer(world.documents, self.store(pin), shaper, target)

    def auditor(self, pin: Pin | None = None) -> Auditor:
        """The auditor of a generation of this database (the active one)."""
        return Auditor(self.comparer(pin), self.store(pin), self._target(pin))

    def store(self, pin: Pin | None = None) -> KnowledgeStore:
        """What is stored, seen from one generation alone (None: all, from the active one)."""
        return self.world.papers.store if pin is None else MongoKnowledge(self.database, pin, self.clock)

    def _target(self, pin: Pin | None) -> ChunkTarget:
        return self.terms.target if pin is None else target_of(self.settings, pin)

    def chosen(self, sources: Sequence[str]) -> list[str]:
        """These sources, all that are watched for none; raises ConfigurationFault for one that is not watched."""
        for source in sources:
            if source not in self.settings.sources:
                message = f"{source} is not among WORKER_SOURCES: add it there, or leave it out"
                raise ConfigurationFault(message)
        return list(sources or self.settings.sources)

    async def counts(self, source: str) -> Mapping[str, int]:
        """`documents` and `chunks` of a source."""
        return await count_source(self.database, self.pin, source)

    async def warm_up(self) -> None:
        """Load the tokenizers, and a model that lives in this process: the first change need not wait for them.

        Raises ConfigurationFault when one cannot be loaded.
        """
        for target in self.terms.targets:
            await asyncio.to_thread(target.tokens.count, "warm up")
        for pin in self.generations.live:
            if is_local(pin.model):
                await self.embedders.client(pin).embed(["warm up"])

    async def release(self, leadership: Leadership) -> None:
        """Give the lease back, if the database answers soon: else it runs out by itself."""
        with suppress(Retryable):
            await within(RELEASE_SECONDS, self.world.papers.lease.release(leadership))


def target_of(settings: WorkerSettings, pin: Pin) -> ChunkTarget:
    """What chunks of a generation are made for."""
    tokens = counter_for(model_named(pin.model, pin.dimensions))
    return ChunkTarget(pin, tokens, {name: SOURCES[name].chunker_version for name in settings.sources})
