"""`check-config`: every setting, the database, the pin and the port, before anything is started."""

import os
import socket
from contextlib import closing
from typing import Final

from brain.knowledge.embedding.choose import provider_of
from brain.knowledge.settings import load
from worker.app import opened
from worker.commands.index_notice import index_notice
from worker.commands.where import Where
from worker.config import PREFIX, WorkerSettings, warnings
from worker.errors import EXIT_OK, ConfigurationFault
from worker.mongo.reach import first_entry

_READABLE: Final = "its first entry may be read: the headroom is exact"
_NOT_READABLE: Final = (
    "its first entry may not be read: the headroom is found by trying, up to a tenth too small; a role with find on "
    "local.oplog.rs has it exact"
)


async def check_config(where: Where) -> int:
    """Say that all is well, with what would be used; raises KnowledgeError with every mistake that was found.

    Mistakes of settings come first and without any network; then the database (75 when it does not answer), its
    topology and privileges, the pin, and the port. A search index that is not ready is a warning.
    """
    settings = load(WorkerSettings, os.environ, PREFIX, embedded=where.embedded)
    async with opened(embedded=where.embedded, data=where.data, writes=False) as app:
        led = await app.lease.holder() is not None
        pin, uri = app.pin, app.shown_uri
        index = await index_notice(app)
        readable = where.embedded or await first_entry(app.database) is not None
    if not led:  # beside a running worker the port is taken, and rightly
        _check_port(settings)
    said = [*warnings(settings, os.environ), *([index.warning] if index.warning is not None else [])]
    report = {
        "ok": True,
        "warnings": said,
        "database": {"uri": uri, "name": settings.atlas_db, "driver": settings.mongo_driver},
        "embedding": {"provider": provider_of(pin.model), **pin.as_row()},
        "index": index.words,
        "history": {"readable": readable},
        "sources": list(settings.sources),
        "metrics": f"http://{settings.metrics_host}:{settings.metrics_port}/metrics",
    }
    lines = [
        "All is well.",
        f"database   {uri}, {settings.atlas_db}, by {settings.mongo_driver}",
        f"embedding  {provider_of(pin.model)}, {pin.model} ({pin.dimensions})",
        f"index      {index.words}",
        f"history    {_READABLE if readable else _NOT_READABLE}",
        f"sources    {', '.join(settings.sources)}",
        f"metrics    {report['metrics']}",
        *(f"warning: {sentence}" for sentence in said),
    ]
    where.answer(report, "\n".join(lines))
    return EXIT_OK


def _check_port(settings: WorkerSettings) -> None:
    family = socket.AF_INET6 if ":" in settings.metrics_host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.metrics_host, settings.metrics_port))
        except OSError as error:
            message = (
                f"WORKER_METRICS_PORT: port {settings.metrics_port} on {settings.metrics_host} cannot be had "
                f"({error.strerror}): stop what holds it, or choose another."
            )
            raise ConfigurationFault(message) from error
