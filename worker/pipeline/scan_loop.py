"""The loops over the book of scans: one does the scans, the urgent ones first, and one beside it removes at once.

What was dropped or renamed away must not be found any more, so its removal waits for no scan that runs: its stored
documents are swept as soon as the book knows, in front of whatever waits. Its scan follows in its turn and makes sure.
A scan that only makes sure (a backfill, the safety rescan) keeps its place and lets an urgent one pass.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from brain.knowledge.log import log
from worker.model import Leadership, Scan
from worker.pipeline.around import Around
from worker.pipeline.scan import Scanner
from worker.pipeline.scan_book import Job, ScanBook, ScanPostponed, ScanVoid
from worker.ports import KnowledgeStore

_logger = logging.getLogger(__name__)

SAY_EVERY: Final = 5.0
"""Seconds between two log lines about the progress of scans."""

Watch = Callable[[Scan], None]
Ended = Callable[[Scan, float], Awaitable[None]]


class ScanLoop:
    """Scans under one leadership. `moved` is told of each stored place of a scan, and of its end."""

    def __init__(
        self, scanner: Scanner, book: ScanBook, store: KnowledgeStore, leadership: Leadership, around: Around
    ) -> None:
        self._scanner = scanner
        self._book = book
        self._store = store
        self._leadership = leadership
        self._around = around
        self._said_at = around.clock.monotonic()

    async def remove_for_ever(self) -> None:
        """Sweep each source that is gone, as soon as the book knows."""
        while True:
            job = await self._book.gone()
            await self._scanner.sweep(job.scan, "removal")
            job.swept = True

    async def scan_for_ever(self, sources: Collection[str], moved: Watch, ended: Ended) -> None:
        """Do the scans of these sources, one at a time; `ended` is told of each, and when this process began it."""
        while True:
            job = await self._book.next(sources)
            self._said_at = now = self._around.clock.monotonic()
            if job.begun is None:
                job.begun = now
                self._around.meter.resynced(job.scan.reason)
            try:
                scan = await self._scan(job, sources, moved)
            except (ScanVoid, ScanPostponed):
                continue  # the source is wanted anew, or another one is wanted sooner: `next` knows
            moved(job.scan)
            self._around.health.scans_pending(self._book.urgent)
            words = f"{scan.source}: {scan.seen} documents looked at ({scan.reason})"
            log(_logger, logging.INFO, "scan_done", words, source=scan.source, reason=scan.reason, seen=scan.seen)
            await ended(scan, job.begun)

    async def _scan(self, job: Job, sources: Collection[str], moved: Watch) -> Scan:
        async def keep(scan: Scan) -> None:
            await self._around.persist("database", lambda: self._book.keep(job, scan))
            moved(scan)
            self._say(scan)
            self._book.check_turn(job, sources)

        scan = await self._scanner.run(job.scan, keep)
        await self._sweep_strays(scan.source)
        await self._around.persist("database", lambda: self._book.finish(job, scan))
        return scan

    async def _sweep_strays(self, source: str) -> None:
        """Remove chunk rows that no document owns: nothing else would ever look at them."""
        swept = await self._around.persist("database", lambda: self._store.sweep_strays(source, self._leadership))
        if swept:
            words = f"{source}: {swept} chunks that no document owned were removed"
            log(_logger, logging.WARNING, "strays_swept", words, source=source, chunks=swept)

    def _say(self, scan: Scan) -> None:
        """Say in the log, now and then, how far a scan is."""
        now = self._around.clock.monotonic()
        if now - self._said_at >= SAY_EVERY:
            self._said_at = now
            words = f"{scan.source}: {scan.seen} documents looked at so far ({scan.reason})"
            log(_logger, logging.INFO, "scan_progress", words, source=scan.source, reason=scan.reason, seen=scan.seen)
