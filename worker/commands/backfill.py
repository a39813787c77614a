"""`backfill`: look at every document once; only what differs is embedded."""

import time
from collections.abc import Mapping, Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from worker.app import opened
from worker.commands.leading import hand_over
from worker.commands.where import Where
from worker.errors import EXIT_OK
from worker.model import Scan
from worker.parts import App


async def backfill(where: Where, sources: Sequence[str]) -> int:
    """Scan the sources, all by default; a sweep of orphans is part of it."""
    began = time.monotonic()
    async with opened(embedded=where.embedded, data=where.data) as app:
        chosen = app.chosen(sources)
        with Bars(shown=where.people) as bars:
            for source in chosen:
                bars.expect(source, await app.world.documents.estimate(source))
            led = await hand_over(
                app, "backfill", {"sources": chosen}, lambda leader: leader.backfill(chosen, "backfill"), bars.moved
            )
        # Nobody here knows what the worker that runs embedded.
        embedded = {name: count if led else None for name, count in app.embedded.items()}
        report = await _report(app, chosen, embedded, time.monotonic() - began)
    done = f"{embedded['embeddings']:,} texts embedded" if led else "the worker that runs did it"
    where.answer(report, f"Looked at {report['documents']:,} documents in {report['seconds']} s: {done}.")
    return EXIT_OK


async def _report(
    app: App, sources: Sequence[str], embedded: Mapping[str, int | None], seconds: float
) -> dict[str, object]:
    counts = {source: await app.counts(source) for source in sources}
    return {
        "sources": counts,
        "documents": sum(count["documents"] for count in counts.values()),
        "chunks": sum(count["chunks"] for count in counts.values()),
        **embedded,
        "deadLetters": len(await app.world.papers.letters.all()),
        "seconds": round(seconds, 2),
    }


class Bars:
    """Progress bars on a terminal, one a source; nothing elsewhere."""

    def __init__(self, *, shown: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<14}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=not shown,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def expect(self, source: str, total: int) -> None:
        """Show a bar for a source of about this many documents."""
        self._tasks[source] = self._progress.add_task(source, total=total)

    def moved(self, scan: Scan) -> None:
        """Show where a scan is."""
        task = self._tasks.get(scan.source)
        if task is not None:
            self._progress.update(task, completed=scan.seen, total=scan.seen if scan.done else None)
