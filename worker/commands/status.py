"""`status`: who leads, how far the stream is stored, which scans are done, how much there is, and what it costs."""

from collections.abc import Mapping
from datetime import datetime
from typing import cast

from rich.console import Group
from rich.text import Text

from worker.app import opened
from worker.commands.where import Where, table
from worker.embedding.spend import utc_day
from worker.errors import EXIT_OK
from worker.mongo.budget import MongoBudget
from worker.parts import App


async def status(where: Where) -> int:
    """Answer from what is stored; raises KnowledgeError when the database does not answer."""
    async with opened(embedded=where.embedded, data=where.data, create=False, writes=False) as app:
        report = await _report(app)
    where.answer(report, _shown(report))
    return EXIT_OK


async def _report(app: App) -> Mapping[str, object]:
    checkpoint = await app.world.papers.checkpoints.load()
    scans = await app.world.papers.checkpoints.scans()
    letters = await app.world.papers.letters.all()
    now = app.clock.now()
    return {
        "database": app.database.name,
        "pin": app.pin.as_row(),
        "leader": await app.lease.holder(),
        "checkpoint": None
        if checkpoint is None
        else {
            "at": checkpoint.position.at.time,
            "savedAt": checkpoint.saved_at.isoformat(),
            "ageSeconds": round((now - checkpoint.saved_at).total_seconds(), 1),
        },
        "sources": {
            source: {
                **(await app.counts(source)),
                "scan": "none" if (scan := scans.get(source)) is None else "done" if scan.done else "running",
                "scannedAt": _iso(scan.finished_at) if scan is not None else None,
            }
            for source in app.settings.sources
        },
        "deadLetters": len(letters),
        "budget": await _budget(app),
    }


async def _budget(app: App) -> Mapping[str, object] | None:
    """What is counted of today's money for embedding; None without a budget."""
    limit = app.settings.daily_budget_usd
    if limit is None:
        return None
    today = utc_day(app.clock.now())
    counted = await MongoBudget(app.database).counted(today)
    left = max(0.0, limit - counted)
    return {"day": today, "limitUsd": limit, "countedUsd": round(counted, 6), "leftUsd": round(left, 6)}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _shown(report: Mapping[str, object]) -> Group:
    leader = cast("Mapping[str, object] | None", report["leader"])
    checkpoint = cast("Mapping[str, object] | None", report["checkpoint"])
    pin = cast("Mapping[str, object]", report["pin"])
    budget = cast("Mapping[str, object] | None", report["budget"])
    sources = cast("Mapping[str, Mapping[str, object]]", report["sources"])
    lines = [
        f"database    {report['database']}",
        f"model       {pin['model']} ({pin['dimensions']}) in {pin['collection']}",
        "leader      "
        + ("nobody" if leader is None else f"pid {leader['pid']} on {leader['host']}, epoch {leader['epoch']}"),
        "checkpoint  " + ("none yet" if checkpoint is None else f"stored {checkpoint['ageSeconds']} s ago"),
        f"dead        {report['deadLetters']} documents",
        "budget      "
        + (
            "none"
            if budget is None
            else f"{budget['leftUsd']} of {budget['limitUsd']} USD left on {budget['day']} (UTC)"
        ),
    ]
    rows = [[name, row["documents"], row["chunks"], row["scan"]] for name, row in sources.items()]
    return Group(Text("\n".join(lines)), table("sources", ["source", "documents", "chunks", "scan"], rows))
