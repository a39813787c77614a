"""The scanner: its places, its bounds, its sweep."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from unittest.mock import patch

import pytest

from tests.support import virtual
from tests.support.sim_stage import Stage, document, trick
from worker.model import Change, DeadLetter, DocKey, LedgerRow, Scan
from worker.pipeline.scan import AHEAD, Scanner
from worker.pipeline.scan_book import ScanVoid

SCAN: Final = Scan("tricks", "first", "v1", done=False)


class Outlet:
    """Keeps what is put out until the test settles it."""

    def __init__(self, *, at_once: bool = True, busy: Sequence[DocKey] = ()) -> None:
        self.at_once = at_once
        self.busy = busy
        self.looks: list[DocKey] = []
        self.open: dict[DocKey, Callable[[], None]] = {}

    async def look(self, change: Change, settled: Callable[[], None]) -> None:
        """Take it."""
        self.looks.append(change.key)
        if self.at_once:
            settled()
        else:
            self.open[change.key] = settled

    def inside(self, source: str) -> Sequence[DocKey]:
        """What the test says."""
        return [key for key in self.busy if key.source == source]

    def settle(self, *numbers: int) -> None:
        """These have their outcome."""
        for number in numbers:
            self.open.pop(trick(number))()


class Kept:
    """Keeps the places that were stored."""

    def __init__(self) -> None:
        self.scans: list[Scan] = []

    async def __call__(self, scan: Scan) -> None:
        """Store."""
        self.scans.append(scan)

    @property
    def after(self) -> DocKey | None:
        """The last place."""
        return self.scans[-1].after


def scanner(stage: Stage, outlet: Outlet) -> Scanner:
    """A scanner of the stage."""
    return Scanner(stage.documents, stage.papers.store, stage.papers.letters, outlet, stage.around)


def fill(stage: Stage, count: int) -> None:
    """Documents 0 to count - 1, never told by the stream."""
    for number in range(count):
        stage.put(document(number, f"name {number}"), told=False)


def test_every_document_once_in_order_over_pages() -> None:
    """Also where a page ends exactly with the source."""

    async def main() -> None:
        for count in (0, 1, 2, 3, 4):
            stage, outlet, kept = Stage(), Outlet(), Kept()
            fill(stage, count)
            done = await scanner(stage, outlet).run(SCAN, kept)
            assert outlet.looks == [trick(number) for number in range(count)]
            assert (done.seen, done.after, done.done) == (count, None, False)
            assert done.finished_at is not None
            assert kept.scans[0].started_at is not None

    with patch("worker.pipeline.scan.PAGE", 2):
        virtual.run(main)


def test_it_goes_on_after_its_place() -> None:
    """Documents up to it are not looked at again, and `seen` counts on."""

    async def main() -> None:
        stage, outlet = Stage(), Outlet()
        fill(stage, 4)
        done = await scanner(stage, outlet).run(replace(SCAN, after=trick(1), seen=2), Kept())
        assert (outlet.looks, done.seen) == ([trick(2), trick(3)], 4)

    virtual.run(main)


def test_its_place_is_the_unbroken_prefix() -> None:
    """A place is stored only up to where every outcome is durable, in whatever order they come."""

    async def main() -> None:
        stage, outlet, kept = Stage(), Outlet(at_once=False), Kept()
        fill(stage, 3)
        running = asyncio.create_task(scanner(stage, outlet).run(SCAN, kept))
        await asyncio.sleep(2)
        outlet.settle(2)
        await asyncio.sleep(2)
        assert kept.after is None
        outlet.settle(0)
        await asyncio.sleep(2)
        assert kept.after == trick(0)
        outlet.settle(1)
        assert (await running).seen == 3
        assert kept.after == trick(2)

    virtual.run(main)


def test_it_is_at_most_so_far_ahead() -> None:
    """The stream shares the coalescer and must find room: never more than AHEAD on their way."""

    async def main() -> None:
        stage, outlet = Stage(), Outlet(at_once=False)
        fill(stage, AHEAD + 5)
        running = asyncio.create_task(scanner(stage, outlet).run(SCAN, Kept()))
        await asyncio.sleep(5)
        assert len(outlet.open) == AHEAD
        while not running.done():
            for settle in list(outlet.open.values()):
                settle()
            outlet.open.clear()
            await asyncio.sleep(1)

    virtual.run(main)


def test_the_sweep_looks_at_what_is_stored_and_gone() -> None:
    """Chunks, ledger rows and dead letters of documents that are not there; what is there is not looked at twice."""

    async def main() -> None:
        stage, outlet = Stage(), Outlet()
        fill(stage, 1)
        for number in range(4):
            stage.db.ledger[trick(number)] = LedgerRow(trick(number), stage.db.now(), deleted=number == 3)
        now = stage.now()
        stage.db.letters[trick(7)] = DeadLetter(trick(7), stage.db.now(), "d1", "Poison", "", 1, now, now)
        await scanner(stage, outlet).run(SCAN, Kept())
        assert outlet.looks[0] == trick(0)
        assert set(outlet.looks[1:]) == {trick(1), trick(2), trick(7)}

    with patch("worker.pipeline.scan.PAGE", 1):
        virtual.run(main)


def test_the_sweep_looks_at_what_is_on_its_way() -> None:
    """It may have been read before the collection was dropped, and be stored when the sweep is over."""

    async def main() -> None:
        outlet = Outlet(busy=[trick(5), DocKey.of("tips", 1)])
        await scanner(Stage(), outlet).run(SCAN, Kept())
        assert outlet.looks == [trick(5)]

    virtual.run(main)


def test_a_void_scan_ends() -> None:
    """What storing a place raises comes out, and nothing hangs on it."""

    async def refuse(scan: Scan) -> None:
        if scan.seen:
            raise ScanVoid(scan.source)

    async def main() -> None:
        stage, outlet = Stage(), Outlet()
        fill(stage, 2)
        with pytest.raises(ScanVoid):
            await scanner(stage, outlet).run(SCAN, refuse)

    virtual.run(main)
