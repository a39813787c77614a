"""The composition root: the only file that knows every adapter."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from brain.knowledge.connect import Target, masked
from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.choose import embedding_client
from brain.knowledge.pin import Pin
from brain.knowledge.settings import load
from brain.knowledge.tokens import counter_for, model_named
from worker.audit.compare import Comparer
from worker.audit.verify import Auditor
from worker.clock import Clock, SystemClock
from worker.config import PREFIX, WorkerSettings
from worker.embedded import EmbeddedServer
from worker.embedding.batcher import LOCAL_LIMITS, BatchingEmbedder
from worker.embedding.gate import Gate
from worker.embedding.lanes import Limits
from worker.embedding.spend import Purse
from worker.errors import ConfigurationFault, Retryable
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
from worker.mongo.pins import pinned
from worker.mongo.requests import MongoRequests
from worker.mongo.topology import check_server
from worker.observe.health import HealthBoard
from worker.observe.metrics import PrometheusMeter
from worker.observe.redact import Redactor
from worker.pipeline.around import Around, NoProbe
from worker.pipeline.diff import Target as ChunkTarget
from worker.pipeline.duties import Papers
from worker.pipeline.leader import Leader, Terms, World
from worker.pipeline.shape import Shaper
from worker.sources.registry import SOURCES

COMMAND_PATIENCE: Final = 30.0
"""Seconds that a one-shot command waits through an outage before it gives up with exit code 75."""


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
    pin: Pin
    world: World
    terms: Terms
    client: EmbeddingClient
    embedder: BatchingEmbedder
    gate: Gate
    lease: MongoLease
    requests: MongoRequests
    around: Around

    @property
    def clock(self) -> Clock:
        """The clock of everything."""
        return self.around.clock

    @property
    def embedded_texts(self) -> int:
        """How many texts this process had embedded so far."""
        return self.embedder.texts_embedded

    def leader(self, leadership: Leadership, watch: Callable[[Scan], None] = lambda _scan: None) -> Leader:
        """The leader under a lease that was taken; money is spent under that lease from now on."""
        if self.gate.purse is not None:
            self.gate.purse.led_by(leadership)
        return Leader(self.world, self.terms, leadership, self.around, watch)

    def comparer(self) -> Comparer:
        """What compares the documents of this database with what is stored of them."""
        world, terms = self.world, self.terms
        shaper = Shaper(world.documents, terms.sources, terms.target.tokens, self.clock, terms.offload)
        return Comparer(world.documents, world.papers.store, shaper, terms.target)

    def auditor(self) -> Auditor:
        """The auditor of this database."""
        return Auditor(self.comparer(), self.world.papers.store, self.terms.target)

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
        if self.settings.embedding_provider == "local":
            await self.client.embed(["warm up"])

    async def release(self, leadership: Leadership) -> None:
        """Give the lease back, if the database answers: else it runs out by itself."""
        try:
            await self.world.papers.lease.release(leadership)
        except Retryable:
            return


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
async def composed(connection: Connection, around: Around) -> AsyncGenerator[App]:
    """Ask the database what it is, and put every part together; gives the embedder's resources back at the end.

    Raises WrongTopology, Refused, PinMismatch or ForeignState when a person must act, Retryable when nothing answers.
    """
    app = await compose(connection, around)
    try:
        yield app
    finally:
        await close(app)


async def compose(connection: Connection, around: Around) -> App:
    """As `composed`, for who closes it with `close`."""
    settings, database = connection.settings, connection.database
    await check_server(database)
    model = model_named(settings.embedding_model, settings.embedding_dimensions)
    pin = await pinned(database, model)
    await ensure_indexes(database, pin)
    client = embedding_client(settings)
    tokens = counter_for(model)
    sources = {name: SOURCES[name] for name in settings.sources}
    target = ChunkTarget(pin, tokens, {name: source.chunker_version for name, source in sources.items()})
    limits = _limits(settings)
    gate = Gate(limits, around, settings.price, await _purse(settings, database, around))
    embedder = BatchingEmbedder(client, tokens, limits, around, gate)
    lease, requests = MongoLease(database, around.clock), MongoRequests(database, around.clock)
    papers = Papers(
        store=MongoKnowledge(database, pin, around.clock),
        checkpoints=MongoCheckpoints(database),
        letters=MongoDeadLetters(database),
        lease=lease,
        requests=requests,
    )
    return App(
        settings=settings,
        database=database,
        server=connection.server,
        shown_uri=masked(connection.uri),
        pin=pin,
        world=World(MongoChangeStream(database, settings.sources), MongoDocuments(database), papers, embedder),
        terms=_terms(settings, target),
        client=client,
        embedder=embedder,
        gate=gate,
        lease=lease,
        requests=requests,
        around=around,
    )


async def close(app: App) -> None:
    """Give back what `compose` opened."""
    await app.embedder.close()
    await app.client.close()


@asynccontextmanager
async def opened(*, embedded: bool, data: Path, create: bool = True) -> AsyncGenerator[App]:
    """Everything a one-shot command needs; raises KnowledgeError when something is wrong or does not answer.

    Without `create` an embedded database must live in the folder already.
    """
    settings = load(WorkerSettings, os.environ, PREFIX, embedded=embedded)
    async with (
        connect(settings, embedded=embedded, data=data, create=create) as connection,
        composed(connection, quiet_surroundings(settings)) as app,
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


def _limits(settings: WorkerSettings) -> Limits:
    if settings.embedding_provider == "local":
        return LOCAL_LIMITS
    return Limits(
        texts=settings.batch_texts,
        tokens=settings.batch_tokens,
        concurrency=settings.concurrency,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
    )


async def _purse(settings: WorkerSettings, database: Database, around: Around) -> Purse | None:
    """The day's money, with what was counted of it before this start; None without a budget."""
    if settings.daily_budget_usd is None:
        return None
    purse = Purse(settings.daily_budget_usd, settings.price, MongoBudget(database), around)
    await purse.open()
    return purse


def _terms(settings: WorkerSettings, target: ChunkTarget) -> Terms:
    return Terms(
        sources={name: SOURCES[name] for name in settings.sources},
        target=target,
        offload=asyncio.to_thread,
        window=settings.coalesce_ms / 1000,
        # A little less than the process has, so that the last checkpoint still fits.
        drain=settings.drain_seconds * 0.8,
        rescan_every=timedelta(hours=settings.rescan_hours),
    )
