"""`demo`: the whole way of a change, as a story that ends by itself.

It starts an embedded database in a folder of its own, loads the sample, follows it, and then edits, hides, deletes and
renames, asking the same search that riders' companions use until the answer is right. Exit code 0 only if every change
was seen.
"""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from rich.console import Console

from brain.knowledge.connect import Target, open_client
from brain.knowledge.search.service import KnowledgeSearch
from brain.knowledge.settings import load
from worker.app import composed, connect, quiet_surroundings
from worker.commands.backfill import Bars
from worker.commands.greeting import load_sample
from worker.commands.story import SCENES, Hits, Played, Scene, show
from worker.commands.where import Where
from worker.config import PREFIX, WorkerSettings
from worker.embedding.remembering import Remembering
from worker.errors import EXIT_DIFFERENCES, EXIT_OK, ConfigurationFault
from worker.model import Scan
from worker.mongo.sample_writer import SampleWriter
from worker.parts import App
from worker.pipeline.leader import Farewell

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Seconds that a change may take in the story; it takes about one."""

POLL: Final = 0.05


async def demo(where: Where, sample: Path | None) -> int:
    """Tell the story in a folder of its own, or in `--data`."""
    if sample is None:
        message = "demo needs sample data: add --sample deploy/sample (`make demo` does)"
        raise ConfigurationFault(message)
    if where.embedded:
        return await _tell(where, sample, where.data)
    with tempfile.TemporaryDirectory(prefix="trickbook-demo-") as folder:
        return await _tell(where, sample, Path(folder))


async def _tell(where: Where, sample: Path, folder: Path) -> int:
    settings = load(WorkerSettings, os.environ, PREFIX, embedded=True)
    console = Console(stderr=where.as_json)
    around = quiet_surroundings(settings)
    console.print(f"Starting an embedded database in {folder} …")
    async with (
        connect(settings, embedded=True, data=folder) as connection,
        composed(connection, around) as app,
    ):
        if app.server is None or not app.server.owned:
            message = f"a worker already uses {folder}: choose another --data, or leave it out"
            raise ConfigurationFault(message)
        loaded = await load_sample(app, sample)
        async with SampleWriter(app.server, settings.atlas_db) as writer:
            console.print(f"Loaded {loaded:,} sample rows. Backfill:")
            played = await _play_all(app, writer, console)
    show(console, played)
    unseen = [one.scene.title for one in played if one.seconds is None]
    rows = [{"change": p.scene.title, "searchableSeconds": p.seconds, "seen": p.seconds is not None} for p in played]
    where.answer(
        {"ok": not unseen, "changes": rows},
        "Every change was seen." if not unseen else f"Never seen: {', '.join(unseen)}.",
    )
    return EXIT_DIFFERENCES if unseen else EXIT_OK


async def _play_all(app: App, writer: SampleWriter, console: Console) -> Sequence[Played]:
    await app.warm_up()
    leadership = await app.world.papers.lease.acquire()
    if leadership is None:
        message = "another worker leads in this database: the demo wants one of its own"
        raise ConfigurationFault(message)
    stop, filled = asyncio.Event(), asyncio.Event()
    left = set(app.settings.sources)
    with Bars(shown=console.is_terminal) as bars:
        for source in app.settings.sources:
            bars.expect(source, await app.world.documents.estimate(source))

        def watch(scan: Scan) -> None:
            bars.moved(scan)
            if scan.done:
                left.discard(scan.source)
            if not left:
                filled.set()

        serving = asyncio.create_task(app.leader(leadership, watch).serve(stop))
        await _first(serving, filled.wait())
    try:
        counts = [await app.counts(source) for source in app.settings.sources]
        chunks = sum(count["chunks"] for count in counts)
        console.print(f"{chunks:,} chunks, {app.embedded['embeddings']:,} texts embedded.\n")
        return [await _first(serving, _play(scene, app, writer, console)) for scene in SCENES]
    finally:
        stop.set()
        await serving
        await app.release(leadership)


async def _play(scene: Scene, app: App, writer: SampleWriter, console: Console) -> Played:
    client = open_client(Target(writer.uri, app.settings.atlas_db, embedded=True), "trickbook-demo")
    embedder = Remembering(app.client)
    clock = app.clock

    search = KnowledgeSearch(client[app.settings.atlas_db], embedder, app.settings.vector_search, follow=True)

    async def ask() -> Hits:
        return (await search.search(scene.query, limit=3)).hits

    try:
        before = await ask()
        await scene.change(writer)
        began = clock.monotonic()
        while True:
            after = await ask()
            seconds = clock.monotonic() - began
            if scene.seen(after):
                console.print(f"[bold]{scene.title}[/]: searchable after [bold]{seconds:.2f} s[/]")
                return Played(scene, before, after, round(seconds, 3))
            if seconds > PATIENCE:
                console.print(f"[bold red]{scene.title}[/]: not seen within {PATIENCE:.0f} s")
                return Played(scene, before, after, None)
            await clock.sleep(POLL)
    finally:
        await search.close()
        await client.close()


async def _first(serving: asyncio.Task[Farewell], work: Awaitable[T]) -> T:
    """The result of the work; when the worker dies first, what it died of."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({serving, task}, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        serving.result()
    return task.result()
