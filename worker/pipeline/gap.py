"""The gap report: what was missed when the history was lost, in one log line when every source has been scanned again.

It is told and not stored: a leader that ends before the scans do takes its gap with it; the scans go on all the same.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bson import Timestamp

from brain.knowledge.log import log
from worker.clock import Clock
from worker.model import Outcome, Scan

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Gap:
    """From the last step that was taken in to the present from which the stream went on."""

    since: Timestamp
    until: Timestamp
    sources: tuple[str, ...]
    noticed: float
    left: set[str] = field(default_factory=set[str])
    outcomes: Counter[Outcome] = field(default_factory=Counter[Outcome])


class GapReport:
    """Of one leadership."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._gap: _Gap | None = None

    def began(self, since: Timestamp, until: Timestamp, sources: Sequence[str]) -> None:
        """The history between these times is lost; the sources will be scanned. A second one widens the first."""
        former = self._gap
        gap = _Gap(since, until, tuple(sources), self._clock.monotonic(), set(sources))
        if former is not None:
            gap.since, gap.outcomes = min(former.since, since), former.outcomes
        self._gap = gap

    def settled(self, outcome: Outcome) -> None:
        """A document that a scan asked for has its outcome."""
        if self._gap is not None:
            self._gap.outcomes[outcome] += 1

    def scanned(self, scan: Scan, since: float) -> None:
        """A scan is done that began at that monotonic time; the last one that began after the gap tells the report."""
        gap = self._gap
        if gap is None or since < gap.noticed:
            return
        gap.left.discard(scan.source)
        if not gap.left:
            self._gap = None
            _tell(gap)


def _tell(gap: _Gap) -> None:
    since, until = (datetime.fromtimestamp(at.time, UTC).isoformat() for at in (gap.since, gap.until))
    found = gap.outcomes
    words = (
        f"changes from {since} to {until} were missed, so every source was scanned again: {found['applied']} documents "
        f"had changed, {found['deleted']} were gone or hidden, {found['unchanged']} were as stored, "
        f"{found['dead_lettered']} could not be processed"
    )
    counts = {outcome: found[outcome] for outcome in ("applied", "deleted", "unchanged", "dead_lettered")}
    fields = {"since": since, "until": until, "sources": ",".join(gap.sources), **counts}
    log(_logger, logging.WARNING, "gap_report", words, **fields)
