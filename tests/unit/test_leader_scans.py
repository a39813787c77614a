"""The leader amid a scan: what is dropped, and what is more urgent, does not wait for it."""

import asyncio
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.support import virtual
from tests.support.sim_stage import TIPS, TRICKS, Stage, document
from worker.model import DocKey, Request, SourceArrived, SourceGone
from worker.pipeline.leader import Farewell


async def begin_a_long_scan(stage: Stage, stop: asyncio.Event) -> "asyncio.Task[Farewell]":
    """Lead with 30 tips stored, and in the middle of a scan of tricks that takes minutes yet."""
    stage.db.documents["tips"] = {DocKey.of("tips", n): document(n, "Tip", str(n)) for n in range(30)}
    serving = asyncio.create_task(stage.leader().serve(stop))
    await asyncio.sleep(10)
    assert len(tips_stored(stage)) == 30
    for number in range(1000):
        stage.put(document(number, "Ollie", str(number)), told=False)
    stage.client.seconds = 10.0
    stage.db.requests["1"] = Request("1", "backfill", {"sources": ["tricks"]})
    await asyncio.sleep(45)
    assert stage.db.scans["tricks"].after is not None
    return serving


def tips_stored(stage: Stage) -> list[DocKey]:
    """The tips that have chunks."""
    return [key for key, rows in stage.db.chunks.items() if key.source == "tips" and rows]


@pytest.mark.parametrize("operation", ["drop", "rename", "dropDatabase"])
def test_a_drop_is_not_kept_waiting_by_a_scan(operation: str) -> None:
    """The chunks of the dropped collection are gone in seconds; the scan that ran goes on where it was."""

    async def main() -> None:
        stage, stop = Stage(sources=(TRICKS, TIPS)), asyncio.Event()
        serving = await begin_a_long_scan(stage, stop)
        stage.db.documents["tips"].clear()
        stage.db.record(SourceGone(("tips",), operation))
        await asyncio.sleep(2)
        assert tips_stored(stage) == []
        assert not stage.db.scans["tricks"].done
        await asyncio.sleep(600)
        assert stage.wrong() == []
        assert stage.client.sent.count("Ollie: 1") == 1
        stop.set()
        await serving

    with patch("worker.pipeline.scan.AHEAD", 100):
        virtual.run(main)


def test_a_drop_that_a_crash_interrupts_goes_first_at_the_next_start() -> None:
    """Killed when the drop was noted and nothing done: both scans keep their places, and the removal is at once."""

    async def main() -> None:
        stage, stop = Stage(sources=(TRICKS, TIPS)), asyncio.Event()
        serving = await begin_a_long_scan(stage, stop)
        stage.db.documents["tips"].clear()
        stage.db.record(SourceGone(("tips",), "drop"))
        await asyncio.sleep(0.1)
        assert stage.db.scans["tips"].reason == "drop"
        serving.cancel()
        await asyncio.wait({serving})
        assert len(tips_stored(stage)) == 30
        place = stage.db.scans["tricks"]
        assert place.after is not None
        stage.db.requests["1"] = replace(stage.db.requests["1"], again=True)
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(2)
        assert tips_stored(stage) == []
        assert stage.db.scans["tricks"].started_at == place.started_at
        assert stage.db.scans["tricks"].seen >= place.seen
        await asyncio.sleep(600)
        assert stage.wrong() == []
        stop.set()
        await serving

    with patch("worker.pipeline.scan.AHEAD", 100):
        virtual.run(main)


def test_a_scan_that_only_makes_sure_lets_an_urgent_one_pass() -> None:
    """A collection that is renamed in is scanned before the rest of a backfill, which then goes on at its place."""

    async def main() -> None:
        stage, stop = Stage(sources=(TRICKS, TIPS)), asyncio.Event()
        serving = await begin_a_long_scan(stage, stop)
        stage.db.documents["tips"] = {DocKey.of("tips", n): document(n, "New", str(n)) for n in range(30, 40)}
        stage.db.record(SourceArrived("tips"))
        await asyncio.sleep(60)
        assert set(tips_stored(stage)) == set(stage.db.documents["tips"])
        assert not stage.db.scans["tricks"].done
        await asyncio.sleep(600)
        assert stage.wrong() == []
        assert stage.db.scans["tricks"].seen == 1000
        assert stage.db.results["1"] == {"sources": ["tricks"]}
        stop.set()
        await serving

    with patch("worker.pipeline.scan.AHEAD", 100):
        virtual.run(main)
