"""The gap report outlives the leader that began it, and is told once every source was scanned after the gap."""

from datetime import timedelta

import pytest
from bson import Timestamp

from tests.support.sim_stage import Stage
from worker.model import Leadership, Scan
from worker.pipeline.gap import GapReport

LEADERSHIP = Leadership(1)
SOURCES = ("docs", "tricks")


def report(stage: Stage) -> GapReport:
    """That of a leader that has just begun."""
    return GapReport(stage.papers.checkpoints, LEADERSHIP, stage.around)


def told(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    """The reports in the log."""
    return [record.__dict__["fields"] for record in caplog.records if record.__dict__.get("action") == "gap_report"]


def scan(source: str, stage: Stage, ago: float) -> Scan:
    """A scan that ended so many seconds ago."""
    return Scan(source, "history_lost", "s", done=True, finished_at=stage.clock.now() - timedelta(seconds=ago))


async def begun(stage: Stage, since: int = 5) -> None:
    """A former leader has noticed a gap, and has looked at two documents."""
    former = report(stage)
    await former.began(Timestamp(since, 1), Timestamp(9, 1), SOURCES)
    former.settled("applied")
    former.settled("deleted")
    await former.store()


async def test_the_next_leader_finishes_it(caplog: pytest.LogCaptureFixture) -> None:
    """With what the former one counted; what scans did before the gap counts for nothing."""
    stage = Stage()
    await begun(stage)
    stage.db.scans = {"docs": scan("docs", stage, 0), "tricks": scan("tricks", stage, 10)}
    successor = report(stage)
    await successor.load(SOURCES)
    successor.settled("applied")
    assert not told(caplog)
    await successor.scanned(scan("tricks", stage, 0), stage.clock.monotonic())
    (line,) = told(caplog)
    assert (line["applied"], line["deleted"], line["sources"]) == (2, 1, "docs,tricks")
    assert stage.db.gap is None


@pytest.mark.parametrize("watched", [SOURCES, ("docs",)])
async def test_it_is_told_at_once_where_nothing_is_left(
    watched: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The former leader died after the last scan; or a source is not watched any more."""
    stage = Stage()
    await begun(stage)
    stage.db.scans = {source: scan(source, stage, 0) for source in watched}
    await report(stage).load(watched)
    assert len(told(caplog)) == 1
    assert stage.db.gap is None


async def test_a_second_gap_widens_the_first() -> None:
    """With all sources to scan again, and the counts kept."""
    stage = Stage()
    await begun(stage)
    successor = report(stage)
    await successor.load(SOURCES)
    await successor.began(Timestamp(7, 1), Timestamp(20, 1), SOURCES)
    stored = stage.db.gap
    assert stored is not None
    counts = {"applied": 1, "deleted": 1}
    assert (stored.since, stored.until, dict(stored.outcomes)) == (Timestamp(5, 1), Timestamp(20, 1), counts)
    stage.db.scans = {source: scan(source, stage, 60) for source in SOURCES}  # of the first gap
    await report(stage).load(SOURCES)
    assert stage.db.gap == stored
