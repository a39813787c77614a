"""`verify [--repair] [--sample N]`: recompute every chunk from the sources, say what differs, and mend it if asked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from rich.console import Group
from rich.text import Text

from worker.app import opened
from worker.audit.lateness import CatchingUp, catching_up
from worker.audit.repair import steps
from worker.audit.sample import A_FEW, VectorSample
from worker.audit.verify import KINDS, Suspects, settle
from worker.commands.leading import hand_over
from worker.commands.progress import Spinner
from worker.commands.where import Where, table
from worker.errors import EXIT_DIFFERENCES, EXIT_OK, KnowledgeError
from worker.model import AuditedChunk, DocKey
from worker.parts import App
from worker.pipeline.leader import Leader

PATIENCE: Final = 30.0
"""Seconds that a difference may last beside a running worker before it counts: what is under way is stored by then."""

ROUNDS: Final = 3
"""Repairs in a row: what a repair shows to differ (a neighbour of another name) is mended by the next."""


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for; `sample` None: the default."""

    sources: Sequence[str]
    repair: bool = False
    sample: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What one look found; `checked` vectors were embedded again and `foreign` of them are another model's.

    `unsampled`: why none was, though some should have been.
    """

    suspects: Suspects
    late: CatchingUp | None
    checked: int
    foreign: int
    unsampled: str | None

    @property
    def sample(self) -> Mapping[str, object] | None:
        """What became of the sample, as a row."""
        if self.unsampled is not None:
            return {"checked": 0, "wrong": 0, "skipped": self.unsampled}
        return {"checked": self.checked, "wrong": self.foreign} if self.checked else None


async def verify(where: Where, order: Order) -> int:
    """Compare, and with `repair` mend through the pipeline and compare again; 1 when something still differs."""
    async with opened(embedded=where.embedded, data=where.data, create=False, writes=order.repair) as app:
        sources = app.chosen(order.sources)
        with Spinner("comparing", shown=where.people) as spinner:
            found = await _look(app, sources, order, spinner.told)
            first = sum(found.suspects.count().values())
            for _ in range(ROUNDS if order.repair else 0):
                if not found.suspects:
                    break
                await _repair(app, found.suspects)
                found = await _look(app, sources, order, spinner.told)
        report = await _report(app, sources, found, first if order.repair else 0)
    where.answer(report, _shown(report, found))
    return EXIT_OK if report["ok"] else EXIT_DIFFERENCES


async def _look(app: App, sources: Sequence[str], order: Order, progress: Callable[[str, int], None]) -> Found:
    sample = VectorSample(A_FEW if order.sample is None else order.sample, app.around.rng)
    auditor = app.auditor()
    suspects = await auditor.audit(sources, progress, sample)
    leader = await app.lease.holder()
    if leader is not None:
        suspects = await settle(auditor, suspects, sources, app.clock, PATIENCE)
    papers, stream = app.world.papers, app.world.stream
    late = await catching_up(leader, papers.checkpoints, stream, sources) if suspects else None
    foreign, unsampled = await _foreign(app, sample, asked=order.sample is not None)
    return Found(suspects.with_foreign(foreign), late, len(sample.rows), len(foreign), unsampled)


async def _foreign(app: App, sample: VectorSample, *, asked: bool) -> tuple[Sequence[AuditedChunk], str | None]:
    """The rows of another model, or why that cannot be known now; who asked for it gets the error."""
    try:
        return await sample.foreign(app.client), None
    except KnowledgeError as error:
        if asked:
            raise
        return [], str(error)


async def _repair(app: App, suspects: Suspects) -> None:
    for keys, rows in steps(suspects):
        arguments = {"keys": [{"source": key.source, "id": key.raw} for key in keys], "discard": rows}
        await hand_over(app, "look", arguments, partial(_mend, keys, rows))


async def _mend(keys: Sequence[DocKey], rows: Sequence[object], leader: Leader) -> None:
    await leader.look(keys, "repair", discard=rows)


async def _report(app: App, sources: Sequence[str], found: Found, first: int) -> dict[str, object]:
    total = found.suspects.count()
    left = sum(total.values())
    letters = await app.world.papers.letters.all()
    return {
        "ok": left == 0,
        **{kind: total[kind] for kind in KINDS},
        "deadLettered": len(letters),
        "repaired": max(0, first - left),
        "catchingUp": None if found.late is None else found.late.as_row(),
        "sample": found.sample,
        "sources": {
            source: {**(await app.counts(source)), **{kind: found.suspects.count(source)[kind] for kind in KINDS}}
            for source in sources
        },
    }


def _shown(report: Mapping[str, object], found: Found) -> Group:
    sources = cast("Mapping[str, Mapping[str, int]]", report["sources"])
    columns = ["documents", "chunks", *(kind for kind in KINDS if report[kind])]  # a terminal is 80 characters wide
    rows = [[name, *(row[column] for column in columns)] for name, row in sources.items()]
    elsewhere = found.suspects.count()
    for name in sources:
        elsewhere -= found.suspects.count(name)
    if elsewhere:
        rows.append(["(of no source)", "", "", *(elsewhere[kind] for kind in KINDS if report[kind])])
    verdict = "What is stored is what should be stored" if report["ok"] else "Differences"
    dead = f", {report['deadLettered']} dead letters" if report["deadLettered"] else ""
    repaired = f", {report['repaired']} repaired" if report["repaired"] else ""
    lines = [f"{verdict}{dead}{repaired}."]
    if found.late is not None:
        lines.append(found.late.sentence())
    if found.unsampled is not None:
        lines.append(f"No stored vector was embedded again: {found.unsampled}")
    elif found.checked:
        wrong = "all as the model gives them" if not found.foreign else f"{found.foreign} of another model"
        lines.append(f"{found.checked} stored vectors embedded again: {wrong}.")
    if found.foreign:
        lines.append("Other vectors may be of another model too: --sample 10000 looks at (nearly) all, for a price.")
    return Group(table("sources", ["source", *columns], rows), *(Text(line) for line in lines))
