"""The composition root: the only file that knows every adapter."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from brain.knowledge.connect import Target, masked
from brain.knowledge.embedding.choose import model_of
from brain.knowledge.pin import Pin
from brain.knowledge.redact import Redactor
from brain.knowledge.settings import load
from worker.audit.canary import Canary
from worker.clock import SystemClock
from worker.config import PREFIX, WorkerSettings
from worker.embedded import KEEPS, EmbeddedServer
from worker.embedding.admission import Admission, check_pins
from worker.embedding.embedders import Embedders
from worker.embedding.spend import Purse
from worker.errors import ConfigurationFault
from worker.generations import Generations
from worker.lifecycle import DRAIN_SHARE
from worker.mongo.budget import MongoBudget
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.checkpoints import MongoCheckpoints
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
from worker.parts import App, target_of
from worker.pipeline.around import Around, NoProbe
from worker.pipeline.duties import Papers
from worker.pipeline.leader import Terms, World
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
