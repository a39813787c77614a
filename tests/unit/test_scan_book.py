"""The book of scans."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from tests.support import virtual
from tests.support.sim_stage import Stage, trick
from worker.errors import FencedOff
from worker.model import Leadership, Scan
from worker.pipeline.scan_book import ScanBook, ScanVoid
from worker.pipeline.scan_shape import covers

SHAPES: Final = {"tricks": "v1", "tips": "v1"}


def book(stage: Stage, epoch: int = 1) -> ScanBook:
    """A book of that epoch."""
    return ScanBook(stage.papers.checkpoints, SHAPES, Leadership(epoch))


def test_what_was_never_scanned_or_shaped_otherwise_is_wanted() -> None:
    """And what was not finished goes on where it was; what is done is not done again."""

    async def main() -> None:
        stage = Stage()
        stage.db.scans = {
            "tricks": Scan("tricks", "first", "v1", done=False, after=trick(3)),
            "tips": Scan("tips", "first", "v0", done=True, finished_at=stage.now()),
        }
        first = book(stage)
        await first.load(SHAPES)
        assert set(first.urgent) == {"tricks", "tips"}
        assert (await first.next(["tricks"])).scan.after == trick(3)
        assert stage.db.scans["tips"] == Scan("tips", "reshaped", "v1", done=False)
        then = stage.now()
        stage.db.scans = {name: Scan(name, "first", "v1", done=True, finished_at=then) for name in SHAPES}
        second = book(stage)
        await second.load(SHAPES)
        assert second.urgent == []
        assert set(second.finished_before(then + timedelta(seconds=1))) == set(SHAPES)
        assert second.finished_before(then) == []

    virtual.run(main)


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        (Scan("tricks", "first", "v1", done=True), "source_added"),
        (Scan("tricks", "backfill", "v1", done=False, after=trick(3)), "source_added"),
        (Scan("tricks", "first", "v0", done=True), "source_added"),
        (Scan("tricks", "drop", "v1", done=False), "drop"),  # what goes at once still does
        (None, "first"),
    ],
)
def test_a_source_that_was_not_followed_is_scanned_from_the_beginning(stored: Scan | None, reason: str) -> None:
    """Wherever its scan was: what changed meanwhile was told to nobody. The others go on."""

    async def main() -> None:
        stage = Stage()
        finished = Scan("tips", "first", "v1", done=True, finished_at=stage.now())
        stage.db.scans = {"tips": finished} | ({} if stored is None else {"tricks": stored})
        one = book(stage)
        await one.load(["tips"])
        assert one.urgent == ["tricks"]
        assert stage.db.scans == {"tips": finished, "tricks": Scan("tricks", reason, "v1", done=False)}

    virtual.run(main)


def test_a_source_wanted_again_voids_its_scan() -> None:
    """What the old scan wants to store is refused; the new one starts from the beginning."""

    async def main() -> None:
        stage = Stage()
        one = book(stage)
        await one.want(["tricks"], "first")
        job = await one.next(["tricks"])
        await one.keep(job, replace(job.scan, after=trick(2)))
        await one.want(["tricks"], "drop")
        with pytest.raises(ScanVoid):
            await one.keep(job, replace(job.scan, after=trick(4)))
        with pytest.raises(ScanVoid):
            await one.finish(job, job.scan)
        assert stage.db.scans["tricks"] == Scan("tricks", "drop", "v1", done=False)
        assert (await one.next(["tricks"])).scan.after is None

    virtual.run(main)


def test_waiting_ends_with_the_last_of_the_sources() -> None:
    """`next` waits for one among those asked for, `done` for all of them."""

    async def main() -> None:
        stage = Stage()
        one = book(stage)
        await one.want(["tips"], "first")
        waiting = asyncio.create_task(one.next(["tricks"]))
        await asyncio.sleep(1)
        assert not waiting.done()
        await one.want(["tricks"], "first")
        job = await waiting
        done = asyncio.create_task(one.done(["tricks"]))
        await asyncio.sleep(1)
        assert not done.done()
        await one.finish(job, replace(job.scan, finished_at=stage.now()))
        await done
        assert one.urgent == ["tips"]
        assert stage.db.scans["tricks"].done

    virtual.run(main)


def test_an_older_epoch_writes_nothing() -> None:
    """FencedOff, and neither the stored scan nor the book moves."""

    async def main() -> None:
        stage = Stage()
        stage.db.epoch = 2
        one = book(stage)
        with pytest.raises(FencedOff):
            await one.want(["tricks"], "first")
        assert (one.urgent, stage.db.scans) == ([], {})

    virtual.run(main)


def test_only_its_own_sources_are_watched() -> None:
    """What is stored may be of sources that were watched in former days."""

    async def main() -> None:
        one = book(Stage())
        assert (one.watches("tricks"), one.watches("riders")) == (True, False)
        assert one.watched([trick(1)]) == [trick(1)]

    virtual.run(main)


@pytest.mark.parametrize(
    ("stored", "reason", "urgent"),
    [
        (Scan("tricks", "first", "v1", done=True), "generation", False),  # it came: built beside, while all is ready
        (Scan("tricks", "first", "v1", done=False), "first", True),  # it came amid the first scan, still the first
        (Scan("tricks", "first", "v1 + v2", done=True), None, False),
        (Scan("tricks", "first", "v2 + v1", done=True), None, False),  # another one is searched now
        (Scan("tricks", "first", "v1 + v0 + v2", done=True), None, False),  # another one is gone
        (Scan("tricks", "generation", "v1 + v2", done=False, after=trick(3)), "generation", False),  # goes on
        (Scan("tricks", "first", "v0 + v2", done=True), "reshaped", True),
    ],
)
def test_a_scan_is_due_for_a_generation_that_it_did_not_know(stored: Scan, reason: str | None, *, urgent: bool) -> None:
    """And for nothing that it knew, in whatever order; a build keeps its place."""

    async def main() -> None:
        stage = Stage()
        stage.db.scans = {"tricks": replace(stored, finished_at=stage.now())}
        one = ScanBook(stage.papers.checkpoints, {"tricks": "v1 + v2"}, Leadership(1))
        await one.load(["tricks"])
        assert one.scans("tricks", reason or "") == (reason is not None)
        assert one.urgent == (["tricks"] if urgent else [])
        if reason is not None:
            job = await one.next(["tricks"])
            assert covers(job.scan, "v1")
            assert covers(job.scan, "v2")
            assert job.scan.after == stored.after

    virtual.run(main)
