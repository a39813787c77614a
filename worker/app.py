"""The composition root: the only file that knows every adapter."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from brain.knowledge.connect import Target, masked
from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.choose import is_local, model_of
from brain.knowledge.pin import Pin
from brain.knowledge.redact import Redactor
from brain.knowledge.settings import load
from brain.knowledge.tokens import counter_for, model_named
from worker.audit.canary import Canary
from worker.audit.compare import Comparer
from worker.audit.verify import Auditor
from worker.clock import Clock, SystemClock
from worker.config import PREFIX, WorkerSettings
from worker.embedded import KEEPS, EmbeddedServer
from worker.embedding.admission import Admission, check_pins
from worker.embedding.embedders import Embedders
from worker.embedding.spend import Purse
from worker.errors import ConfigurationFault, Retryable
from worker.generations import Generations
from worker.lifecycle import DRAIN_SHARE
from worker.model import Leadership, Scan
from worker.mongo.budget import MongoBudget
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.checkpoints import MongoCheckpoints
from worker.mongo.counts import count_source
from worker.mongo.dead_letters import MongoDeadLetters
from worker.mongo.documents import MongoDocuments
from worker.mongo.driver import Database, connected
from worker.mongo.indexes import ensure_indexes
from worker.mongo.knowledge import MongoKnowledge
from worker.mongo.lease import MongoLease
from worker.mongo.pins import MongoPins, ensure_pinned
from worker.mongo.requests import MongoRequests
from worker.mongo.searched import MongoSearched
from worker.mongo.topology import check_server
from worker.observe.health import HealthBoard
from worker.observe.metrics import PrometheusMeter
from worker.pipeline.around import Around, NoProbe
from worker.pipeline.diff import Target as ChunkTarget
from worker.pipeline.duties import Papers
from worker.pipeline.leader import Leader, Terms, World
from worker.pipeline.shape import Shaper
from worker.pipeline.together import within
from worker.ports import KnowledgeStore
from worker.sources.registry import SOURCES

COMMAND_PATIENCE: Final = 30.0
"""Seconds that a one-shot command waits through an outage before it gives up with exit code 75."""

RELEASE_SECONDS: Final = 1.0
"""Seconds that giving the lease back may take."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A database that was not asked anything yet, and the embedded server behind it if there is one."""

    settings: WorkerSettings
    database: Database
    server: EmbeddedServer | None
    uri: str


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
        """Load a model that lives in this process, so that the first change need not wait for it.

        Raises ConfigurationFault when it cannot be loaded.
        """
        for pin in self.generations.live:
            if is_local(pin.model):
                await self.embedders.client(pin).embed(["warm up"])

    async def release(self, leadership: Leadership) -> None:
        """Give the lease back, if the database answers soon: else it runs out by itself."""
        with suppress(Retryable):
            await within(RELEASE_SECONDS, self.world.papers.lease.release(leadership))


@asynccontextmanager
async def connect(
    settings: WorkerSettings, *, embedded: bool, data: Path, create: bool = True
) -> AsyncGenerator[Connection]:
    """Start or join the embedded server if asked for, and open the driver; nothing is asked of the database.

    Without `create`, raises ConfigurationFault where no embedded database lives in the folder.
    """
    start = partial(EmbeddedServer.start_or_join, data, create=create)
    server = await asyncio.to_thread(start) if embedded else None
    try:
        uri = server.uri if server is not None else _uri(settings)
        target = Target(uri, settings.atlas_db, embedded=embedded)
        async with connected(target, settings.mongo_driver) as database:
            yield Connection(settings, database, server, uri)
    finally:
        if server is not None:
            await asyncio.to_thread(server.close)


@asynccontextmanager
async def composed(connection: Connection, around: Around, *, writes: bool = True) -> AsyncGenerator[App]:
    """Ask the database what it is, and put every part together; gives the embedder's resources back at the end.

    Without `writes` nothing is pinned and no index is made: who only looks leaves a new database as it is.
    Raises WrongTopology, Refused, PinMismatch or ForeignState when a person must act, Retryable when nothing answers.
    """
    app = await compose(connection, around, writes=writes)
    try:
        yield app
    finally:
        await close(app)


async def compose(connection: Connection, around: Around, *, writes: bool = True) -> App:
    """As `composed`, for who closes it with `close`."""
    settings, database = connection.settings, connection.database
    await check_server(database)
    model = model_of(settings)
    if writes:
        await ensure_pinned(database, model)
    embedders = Embedders(settings, around, await _purse(settings, database, around))
    pins = MongoPins(database, Admission(settings, embedders))
    found = await pins.found()
    generations = found or Generations(Pin(model.name, model.dimensions))
    check_pins(settings, generations.live)
    for pin in generations.live if writes else ():
        await ensure_indexes(database, pin)
    active, beside = generations.active, generations.live[1:]
    lease, requests = MongoLease(database, around.clock), MongoRequests(database, around.clock)
    papers = Papers(
        store=MongoKnowledge(database, active, around.clock, beside),
        checkpoints=MongoCheckpoints(database),
        letters=MongoDeadLetters(database),
        lease=lease,
        requests=requests,
        pins=pins,
    )
    searched = MongoSearched(database, active, exact=settings.vector_search == "exact")
    canary = Canary(searched, around.clock, around.meter)
    world = World(
        MongoChangeStream(database, settings.sources, keeps=KEEPS if connection.server is not None else None),
        MongoDocuments(database),
        papers,
        embedders.embedder(active),
        {pin: embedders.embedder(pin) for pin in beside},
        canary.stored,
    )
    return App(
        settings=settings,
        database=database,
        server=connection.server,
        shown_uri=masked(connection.uri),
        generations=generations,
        pinned=found is not None,
        world=world,
        terms=_terms(settings, generations),
        embedders=embedders,
        lease=lease,
        requests=requests,
        around=around,
        canary=canary,
    )


async def close(app: App) -> None:
    """Give back what `compose` opened."""
    await app.embedders.close()


@asynccontextmanager
async def opened(*, embedded: bool, data: Path, create: bool = True, writes: bool = True) -> AsyncGenerator[App]:
    """Everything a one-shot command needs; raises KnowledgeError when something is wrong or does not answer.

    Without `create` an embedded database must live in the folder already; without `writes` nothing is written now.
    """
    settings = load(WorkerSettings, os.environ, PREFIX, embedded=embedded)
    async with (
        connect(settings, embedded=embedded, data=data, create=create) as connection,
        composed(connection, quiet_surroundings(settings), writes=writes) as app,
    ):
        yield app


def quiet_surroundings(settings: WorkerSettings) -> Around:
    """Surroundings that nobody scrapes, with a command's patience."""
    clock = SystemClock()
    board = HealthBoard(clock, Redactor(settings.secret_values()))
    meter = PrometheusMeter(settings.sources)
    rng = Random()  # noqa: S311 - jitter, not secrets
    return Around(clock, meter, board, NoProbe(), rng, patience=COMMAND_PATIENCE)


def _uri(settings: WorkerSettings) -> str:
    if settings.atlas_uri is None:
        message = "ATLAS_URI is not set: set it to the connection string from Atlas, or add --embedded"
        raise ConfigurationFault(message)
    return settings.atlas_uri.get_secret_value()


def target_of(settings: WorkerSettings, pin: Pin) -> ChunkTarget:
    """What chunks of a generation are made for."""
    tokens = counter_for(model_named(pin.model, pin.dimensions))
    return ChunkTarget(pin, tokens, {name: SOURCES[name].chunker_version for name in settings.sources})


async def _purse(settings: WorkerSettings, database: Database, around: Around) -> Purse | None:
    """The day's money, with what was counted of it before this start; None without a budget."""
    if settings.daily_budget_usd is None:
        return None
    purse = Purse(settings.daily_budget_usd, settings.price, MongoBudget(database), around)
    await purse.open()
    return purse


def _terms(settings: WorkerSettings, generations: Generations) -> Terms:
    target, *beside = (target_of(settings, pin) for pin in generations.live)
    return Terms(
        sources={name: SOURCES[name] for name in settings.sources},
        target=target,
        beside=tuple(beside),
        offload=asyncio.to_thread,
        window=settings.coalesce_ms / 1000,
        drain=settings.drain_seconds * DRAIN_SHARE,
        rescan_every=timedelta(hours=settings.rescan_hours),
    )
