"""What `run` tells a person: what happens here, and what to try next."""

from pathlib import Path

from rich.console import Console

from brain.knowledge.embedding.choose import provider_of
from worker.commands.where import Where
from worker.docs_sync import SyncOptions, sync
from worker.mongo.docs import MongoDocs
from worker.mongo.sample_writer import SampleWriter
from worker.parts import App
from worker.sample import DOCS_ALLOW, read_sample


async def greet(app: App, where: Where, sample: Path | None, port: int) -> None:
    """Load the sample into an empty embedded database, and say where everything is.

    Nothing is said where no person reads: under a supervisor the log tells.
    """
    loaded = 0 if sample is None else await load_sample(app, sample)
    if not where.people:
        return
    # Not wrapped and without a frame: the lines are there to be copied.
    Console(stderr=True).print(_words(app, where, port, loaded), soft_wrap=True, markup=False, highlight=False)


async def load_sample(app: App, folder: Path) -> int:
    """Load the sample into an embedded database that holds none of it, pages of the docs included; how many rows.

    Nothing happens where the database is not an embedded one.
    """
    if app.server is None:
        return 0
    sample = read_sample(folder)
    async with SampleWriter(app.server, app.settings.atlas_db) as writer:
        loaded = await writer.fill_if_empty(sample)
    if loaded and sample.docs is not None:
        pages = MongoDocs(app.database)
        report = await sync(sample.docs, pages, SyncOptions(allow=DOCS_ALLOW), app.clock.now())
        loaded += len(report.added)
    return loaded


def _words(app: App, where: Where, port: int, loaded: int) -> str:
    settings = app.settings
    at = f" --embedded --data {where.data}" if where.embedded else ""
    address = app.shown_uri.partition("/?")[0]
    lines = [
        f"database   {address}, {settings.atlas_db}" + (f" ({loaded:,} sample rows loaded)" if loaded else ""),
        f"embedding  {app.pin.model} ({app.pin.dimensions}), {provider_of(app.pin.model)}",
        f"status     http://{settings.metrics_host}:{port}/ (metrics: /metrics, readiness: /readyz)",
        "",
        "Every change of a watched collection becomes a fresh chunk about a second later. Try in another terminal:",
        "",
        f'  .venv/bin/python -m brain search "how do I flip the board" --sport skateboarding{at}',
    ]
    if where.embedded:
        edit = (
            f"import pymongo; pymongo.MongoClient('{address}')['{settings.atlas_db}'].trickipedia.update_one("
            "{'name': 'Kickflip'}, {'$set': {'description': 'Flick it like a marmalade sandwich.'}})"
        )
        lines += [
            f'  .venv/bin/python -c "{edit}"',
            f'  .venv/bin/python -m brain search "marmalade sandwich"{at}',
        ]
    lines += [f"  .venv/bin/python -m worker {command}{at}" for command in ("status", "verify")]
    return "\n".join([*lines, "", "Ctrl-C ends it; the next start goes on where it was.", ""])
