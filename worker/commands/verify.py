"""`verify [--repair]`: recompute every chunk from the sources, say what differs, and mend it where asked."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self, cast

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table

from worker.app import App, opened
from worker.audit.verify import KINDS, Suspects, settle
from worker.commands.leading import hand_over
from worker.commands.where import Where, table
from worker.errors import EXIT_DIFFERENCES, EXIT_OK

PATIENCE: Final = 30.0
"""Seconds that a difference may last beside a running worker before it counts (design.md)."""

ROUNDS: Final = 3
"""Repairs in a row: what a repair shows to differ (a neighbour of another name) is mended by the next."""


async def verify(where: Where, sources: Sequence[str], *, repair: bool) -> int:
    """Compare, and with `repair` mend through the pipeline and compare again; 1 when something still differs."""
    async with opened(embedded=where.embedded, data=where.data) as app:
        chosen = app.chosen(sources)
        with _Spinner(shown=where.people) as spinner:
            suspects = await _differences(app, chosen, spinner.told)
            found = sum(suspects.count().values())
            for _ in range(ROUNDS if repair else 0):
                if not suspects:
                    break
                await _repair(app, suspects)
                suspects = await _differences(app, chosen, spinner.told)
        report = await _report(app, chosen, suspects, found if repair else 0)
    where.answer(report, _shown(report))
    return EXIT_OK if report["ok"] else EXIT_DIFFERENCES


async def _differences(app: App, sources: Sequence[str], progress: Callable[[str, int], None]) -> Suspects:
    auditor = app.auditor()
    suspects = await auditor.audit(sources, progress)
    if await app.lease.holder() is None:
        return suspects
    return await settle(auditor, suspects, sources, app.clock, PATIENCE)


async def _repair(app: App, suspects: Suspects) -> None:
    # A row that is discarded and whose document is not looked at in the same request is missing if this command ends.
    keys, rows = suspects.to_look_at, list(suspects.rows)
    arguments = {"keys": [{"source": key.source, "id": key.raw} for key in keys], "discard": rows}
    await hand_over(app, "look", arguments, lambda leader: leader.look(keys, "repair", discard=rows))


async def _report(app: App, sources: Sequence[str], suspects: Suspects, found: int) -> dict[str, object]:
    total = suspects.count()
    left = sum(total.values())
    letters = await app.world.papers.letters.all()
    return {
        "ok": left == 0,
        **{kind: total[kind] for kind in KINDS},
        "deadLettered": len(letters),
        "repaired": max(0, found - left),
        "sources": {
            source: {**(await app.counts(source)), **{kind: suspects.count(source)[kind] for kind in KINDS}}
            for source in sources
        },
    }


def _shown(report: Mapping[str, object]) -> Table:
    sources = cast("Mapping[str, Mapping[str, int]]", report["sources"])
    rows = [[name, *row.values()] for name, row in sources.items()]
    verdict = "what is stored is what should be stored" if report["ok"] else "differences"
    dead = f", {report['deadLettered']} dead letters" if report["deadLettered"] else ""
    repaired = f", {report['repaired']} repaired" if report["repaired"] else ""
    return table(f"{verdict}{dead}{repaired}", ["source", "documents", "chunks", *KINDS], rows)


class _Spinner:
    """Tells a person how far it is; nothing elsewhere."""

    def __init__(self, *, shown: bool) -> None:
        self._progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), console=Console(stderr=True), disable=not shown
        )
        self._task = self._progress.add_task("comparing")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def told(self, source: str, seen: int) -> None:
        self._progress.update(self._task, description=f"{source}: {seen:,} documents compared")
