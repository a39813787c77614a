"""The gap report: what was missed when the history was lost, in one log line when every source has been scanned again.

It is stored until it is told, so that a leader that ends before the scans do leaves it to the next one. After a kill
its counts lack what the last second settled.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from bson import Timestamp

from brain.knowledge.log import log
from worker.model import Gap, Leadership, Outcome, Scan
from worker.pipeline.around import Around
from worker.ports import Checkpoints

_logger = logging.getLogger(__name__)

KEEP_EVERY: Final = 1.0
"""Seconds between two stores of the counts, while they move."""


@dataclass(slots=True)
class _Open:
    """A gap that is not told yet: `left` are the sources to scan, `known` since when (monotonic) this process knows."""

    gap: Gap
    known: float
    left: set[str]
    outcomes: Counter[Outcome] = field(default_factory=Counter[Outcome])

    def now(self) -> Gap:
        """As it is to be stored."""
        gap = self.gap
        return Gap(gap.since, gap.until, gap.sources, gap.noticed_at, dict(self.outcomes))


class GapReport:
    """Of one leadership. What stores waits through an outage, and raises FencedOff."""

    def __init__(self, checkpoints: Checkpoints, leadership: Leadership, around: Around) -> None:
        self._checkpoints = checkpoints
        self._leadership = leadership
        self._around = around
        self._open: _Open | None = None
        self._stored: Gap | None = None
        self._turn = asyncio.Lock()

    async def load(self, watched: Collection[str]) -> None:
        """Take over what a former leader did not tell; it is told at once where every scan is done."""
        gap = self._stored = await self._around.persist("database", self._checkpoints.gap)
        if gap is None:
            return
        scans = await self._around.persist("database", self._checkpoints.scans)
        left = {name for name in gap.sources if name in watched and not _scanned_after(scans.get(name), gap)}
        self._open = _Open(gap, self._around.clock.monotonic(), left, Counter(gap.outcomes))
        await self._tell_if_whole()

    async def began(self, since: Timestamp, until: Timestamp, sources: Sequence[str]) -> None:
        """The history between these times is lost; the sources will be scanned. A second one widens the first.

        Durable when it returns: the scans are noted after it, so that one that is done later counts for it.
        """
        clock, former = self._around.clock, self._open
        outcomes: Counter[Outcome] = Counter()
        if former is not None:
            since, outcomes = min(former.gap.since, since), former.outcomes
        gap = Gap(since, until, tuple(sources), clock.now())
        self._open = _Open(gap, clock.monotonic(), set(sources), outcomes)
        await self.store()

    def settled(self, outcome: Outcome) -> None:
        """A document that a scan asked for has its outcome."""
        if self._open is not None:
            self._open.outcomes[outcome] += 1

    async def scanned(self, scan: Scan, since: float) -> None:
        """A scan is done that began at that monotonic time; the last one that began after the gap tells the report."""
        if self._open is None or since < self._open.known:
            return
        self._open.left.discard(scan.source)
        await self._tell_if_whole()

    async def keep(self) -> None:
        """Store the counts, for ever."""
        while True:
            await self._around.clock.sleep(KEEP_EVERY)
            await self.store()

    async def store(self) -> None:
        """Store what there is to tell, or that there is nothing any more."""
        async with self._turn:
            gap = None if self._open is None else self._open.now()
            if gap != self._stored:
                await self._around.persist("database", lambda: self._checkpoints.save_gap(gap, self._leadership))
                self._stored = gap

    async def _tell_if_whole(self) -> None:
        if self._open is not None and not self._open.left:
            _tell(self._open.now())
            self._open = None
            await self.store()


def _scanned_after(scan: Scan | None, gap: Gap) -> bool:
    return scan is not None and scan.done and scan.finished_at is not None and scan.finished_at >= gap.noticed_at


def _tell(gap: Gap) -> None:
    since, until = (datetime.fromtimestamp(at.time, UTC).isoformat() for at in (gap.since, gap.until))
    outcomes: tuple[Outcome, ...] = ("applied", "deleted", "unchanged", "dead_lettered")
    counts = {outcome: gap.outcomes.get(outcome, 0) for outcome in outcomes}
    words = (
        f"changes from {since} to {until} were missed, so every source was scanned again: {counts['applied']} "
        f"documents had changed, {counts['deleted']} were gone or hidden, {counts['unchanged']} were as stored, "
        f"{counts['dead_lettered']} could not be processed"
    )
    fields = {"since": since, "until": until, "sources": ",".join(gap.sources), **counts}
    log(_logger, logging.WARNING, "gap_report", words, **fields)
