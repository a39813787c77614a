"""`run`: follow the database and keep the chunks fresh, until stopped."""

import asyncio
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from brain.knowledge.log import configure, log
from brain.knowledge.redact import Redactor
from brain.knowledge.settings import load
from worker.app import Connection, close, compose, connect
from worker.clock import SystemClock
from worker.commands.greeting import greet
from worker.commands.index_notice import index_notice
from worker.commands.where import Where
from worker.config import PREFIX, WorkerSettings, warnings
from worker.docs_sync.schedule import Schedule, keep_docs
from worker.errors import ConfigurationFault, GenerationsChanged, LeaseGone
from worker.lifecycle import CUT_SHARE, Notifier, Stop, beat, leaves_of, supervise
from worker.model import Leadership
from worker.mongo.docs import MongoDocs
from worker.observe.health import HealthBoard, Heartbeat, announce
from worker.observe.http import StatusServer
from worker.observe.metrics import PrometheusMeter
from worker.observe.pages import StatusPages
from worker.parts import App
from worker.pipeline.around import Around, NoProbe
from worker.pipeline.leader import Farewell
from worker.pipeline.together import Together, end, unless
from worker.ports import Probe

STAND_BY: Final = 1.0  # seconds between two looks at the lease
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Start:
    """What `run` was asked for: where, with which sample data, and on which port it answers."""

    where: Where
    sample: Path | None
    port: int


async def run(where: Where, sample: Path | None, probe: Probe | None = None) -> int:
    """Run until a signal; the exit code says why it ended. Tests pass a probe that stops the process at a place."""
    if sample is not None and not where.embedded:
        message = "--sample is for an embedded database only: add --embedded, or leave --sample out"
        raise ConfigurationFault(message)
    settings = load(WorkerSettings, os.environ, PREFIX, embedded=where.embedded)
    clock = SystemClock()
    meter = PrometheusMeter(settings.sources)
    board = HealthBoard(clock, Redactor(settings.secret_values()))
    heartbeat = Heartbeat(clock)
    around = Around(clock, meter, board, probe or NoProbe(), Random())  # noqa: S311 - jitter, not secrets
    notifier = Notifier(os.environ)
    _wire(meter, board)
    with (
        configure(settings.log_level, secrets=settings.secret_values()) as pipe,
        Stop(settings.drain_seconds) as stop,
        StatusServer(StatusPages(meter, board, heartbeat), settings.metrics_host, settings.metrics_port) as server,
    ):
        meter.read_log_drops(lambda: pipe.dropped)
        for sentence in warnings(settings, os.environ):
            log(_logger, logging.WARNING, "configuration_warning", sentence)
        notifier.ready()
        async with connect(settings, embedded=where.embedded, data=where.data) as connection:
            start = Start(where, sample, server.port)
            code = await supervise(
                _serve(connection, around, stop, start),
                {
                    "heartbeat": beat(heartbeat, notifier, board.moving, clock),
                    "readiness": announce(board, clock),
                },
                stop,
                settings.drain_seconds * CUT_SHARE,
            )
            notifier.stopping()
        log(_logger, logging.INFO, "stopped", "the worker has stopped", exit_code=code)
        return code


def _wire(meter: PrometheusMeter, board: HealthBoard) -> None:
    meter.read_gauge("watermark_age_seconds", board.watermark_age)
    meter.read_gauge("leader", lambda: float(board.leads()))
    meter.read_gauge("ready", lambda: float(board.snapshot().ready))


async def _serve(connection: Connection, around: Around, stop: Stop, start: Start) -> None:
    """Connect, wait for the lease, lead; returns when drained after a stop.

    When the generations of chunks change, everything is put together anew, under the same lease; when the lease itself
    is gone (the database was dropped), under another one.
    """

    async def put_together() -> App | None:
        return await unless(stop.requested, around.persist("database", lambda: compose(connection, around)))

    first = await put_together()
    if first is None:
        return
    await greet(first, start.where, start.sample, start.port)
    leadership: Leadership | None = None
    app: App | None = first
    try:
        while app is not None:
            again = False
            try:
                if leadership is None:  # a lease that is held must not wait for a model to load
                    await app.warm_up()
                    leadership = await unless(stop.requested, _stand_by(app, around))
                again = leadership is not None and await _lead(app, leadership, stop.requested)
            except* LeaseGone as gone:
                leadership, again = None, True
                around.health.role("starting")
                log(_logger, logging.WARNING, "lease_gone", f"{next(leaves_of(gone))}; this process begins again")
            finally:
                await close(app)
            app = await put_together() if again else None
    finally:
        if leadership is not None:
            await first.release(leadership)


async def _lead(app: App, leadership: Leadership, stop: asyncio.Event) -> bool:
    """Lead until a stop; whether, instead, to begin again with other generations."""
    await app.around.probe.reached("leading")
    log(_logger, logging.INFO, "leading", "this process leads", epoch=leadership.epoch)
    if (notice := await index_notice(app)).warning is not None:
        log(_logger, logging.WARNING, "index_not_ready", notice.warning)
    schedule = Schedule.of(app.settings)
    again = False
    async with Together() as group:
        beside = [group.create_task(app.canary.watch())]
        if schedule:
            beside.append(group.create_task(keep_docs(schedule, MongoDocs(app.database, leadership), app.clock)))
        try:
            _say(await app.leader(leadership).serve(stop))
        except GenerationsChanged as change:
            again = True
            log(_logger, logging.INFO, "generations_changed", str(change))
        await end(beside)
    return again


def _say(farewell: Farewell) -> None:
    """One line for the end of a leadership, true in every case."""
    left = f"{farewell.left} changes are left to the next start" if farewell.left else "nothing in hand is left"
    stored = "the last position is stored" if farewell.stored else "the last position could not be stored"
    whole = farewell.stored and not farewell.left
    log(_logger, logging.INFO if whole else logging.WARNING, "drained", f"{left}; {stored}", left=farewell.left)


async def _stand_by(app: App, around: Around) -> Leadership:
    """Wait for the lease."""
    while True:
        leadership = await around.persist("database", app.world.papers.lease.acquire)
        if leadership is not None:
            return leadership
        around.health.role("standby")
        await around.clock.sleep(STAND_BY)
