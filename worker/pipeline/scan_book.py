"""The book of scans: which sources must be scanned, stored before anyone relies on it.

A source may be wanted again while it is being scanned (its collection was dropped meanwhile, say): the scan under way
is then void, and a new one starts from the beginning. Nothing that a void scan wants to store is stored.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from worker.errors import KnowledgeError
from worker.model import DocKey, Leadership, Scan
from worker.pipeline.scan_shape import AND, covers
from worker.ports import Checkpoints

REPEATING: Final = frozenset({"scheduled", "backfill"})
"""Reasons of scans of what was scanned before, and followed since: they are not expected to find anything."""

GENERATION: Final = "generation"
"""The reason of a scan that builds a generation which nobody searches yet."""

MAKING_SURE: Final = REPEATING | {GENERATION}
"""Reasons of scans that find nothing which answers miss: a worker is ready while they run."""

ADDED: Final = "source_added"
"""The reason of a scan of what was scanned in former days, and not followed since."""

REMOVING: Final = frozenset({"drop", "rename", "dropDatabase", "renamed_in"})
"""Reasons of scans of which documents are gone all at once: these are removed before any scan has its turn."""


class ScanVoid(KnowledgeError):
    """The source is wanted anew: this scan counts no longer."""


class ScanPostponed(KnowledgeError):
    """Another scan goes first: this one's place is kept, and it goes on afterwards."""


@dataclass(slots=True)
class Job:
    """A scan to do, with where it is; `swept` of what was gone, `void` once wanted anew.

    `begun` is the monotonic time at which this process began it.
    """

    scan: Scan
    void: bool = False
    begun: float | None = None
    swept: bool = False

    @property
    def urgent(self) -> bool:
        """Whether answers may be missing or wrong without it."""
        return self.scan.reason not in MAKING_SURE


class ScanBook:
    """The scans of one leadership. Its methods raise Retryable when the database does not answer, and FencedOff."""

    def __init__(self, checkpoints: Checkpoints, shapes: Mapping[str, str], leadership: Leadership) -> None:
        self._checkpoints = checkpoints
        self._shapes = shapes
        self._leadership = leadership
        self._open: dict[str, Job] = {}
        self._finished: dict[str, datetime] = {}
        self._turn = asyncio.Lock()
        self._changed = asyncio.Condition()

    @property
    def sources(self) -> Sequence[str]:
        """The sources of this leadership."""
        return list(self._shapes)

    def watches(self, source: str) -> bool:
        """Whether this leadership is about that source: what is stored may be of others, watched in former days."""
        return source in self._shapes

    def scans(self, source: str, reason: str) -> bool:
        """Whether a scan of the source for that reason is not done."""
        return source in self._open and self._open[source].scan.reason == reason

    def watched(self, keys: Iterable[DocKey]) -> Sequence[DocKey]:
        """Those of the documents whose source is watched."""
        return [key for key in keys if self.watches(key.source)]

    @property
    def urgent(self) -> Sequence[str]:
        """Those of them without which answers may be missing or wrong; the others only make sure."""
        return [source for source, job in self._open.items() if job.urgent]

    async def start_over(self) -> None:
        """Everything must be scanned from the beginning: nobody knows since when changes were missed."""
        await self.want(list(self._shapes), "first")

    async def load(self, followed: Collection[str]) -> None:
        """Take over what is stored: scans not done go on; sources never scanned or shaped otherwise now are wanted.

        So is one that is not among those `followed` up to the stored position, however far its scan was: what changed
        meanwhile was told to nobody.
        """
        stored = await self._checkpoints.scans()
        for source, shape in self._shapes.items():
            scan = stored.get(source)
            if scan is None:
                await self.want([source], "first")
            elif source not in followed:
                await self.want([source], ADDED if scan.done or scan.reason in MAKING_SURE else scan.reason)
            elif (reason := _due(scan, shape)) is not None:
                await self.want([source], reason)
            elif not scan.done:
                self._open[source] = Job(scan)
            elif scan.finished_at is not None:
                self._finished[source] = scan.finished_at
        await self._tell()

    async def want(self, sources: Sequence[str], reason: str) -> None:
        """These sources must be scanned from the beginning; durable when it returns.

        A scan that is under way for a reason of its own keeps it when one that only repeats is wanted.
        """
        for source in sources:
            open_ = self._open.get(source)
            kept = open_.scan.reason if open_ is not None and reason in REPEATING else reason
            scan = Scan(source, kept, self._shapes[source], done=False)
            async with self._turn:
                await self._checkpoints.save_scan(scan, self._leadership)
                if old := self._open.pop(source, None):
                    old.void = True
                self._open[source] = Job(scan)
        await self._tell()

    async def next(self, among: Collection[str]) -> Job:
        """The scan to do now, of one of these sources, the urgent ones first; waits until there is one."""
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._open.keys() & set(among)))
        return min(self._among(among), key=lambda job: not job.urgent)  # of the first kind, the first that was wanted

    def check_turn(self, job: Job, among: Collection[str]) -> None:
        """Raise ScanPostponed when a scan of these sources is more urgent than this one."""
        if not job.urgent and any(other.urgent for other in self._among(among)):
            raise ScanPostponed(job.scan.source)

    async def gone(self) -> Job:
        """A scan whose source was dropped, renamed away or replaced, and not swept since; waits until there is one."""
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._unswept()))
        return self._unswept()[0]

    def _among(self, sources: Collection[str]) -> list[Job]:
        return [job for source, job in self._open.items() if source in sources]

    def _unswept(self) -> list[Job]:
        return [job for job in self._open.values() if job.scan.reason in REMOVING and not job.swept]

    async def keep(self, job: Job, scan: Scan) -> None:
        """Store the place of a scan under way; raises ScanVoid when it counts no longer."""
        async with self._turn:
            _check(job)
            await self._checkpoints.save_scan(scan, self._leadership)
            job.scan = scan

    async def finish(self, job: Job, scan: Scan) -> None:
        """Store that a scan is done; raises ScanVoid when it counts no longer."""
        async with self._turn:
            _check(job)
            job.scan = replace(scan, done=True)
            await self._checkpoints.save_scan(job.scan, self._leadership)
            del self._open[scan.source]
            if scan.finished_at is not None:
                self._finished[scan.source] = scan.finished_at
        await self._tell()

    def finished_before(self, moment: datetime) -> Sequence[str]:
        """Sources whose last scan ended before that moment, and that wait for none now."""
        return [source for source, finished in self._finished.items() if finished < moment and source not in self._open]

    async def done(self, sources: Sequence[str]) -> None:
        """Wait until none of these sources waits for a scan."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._open.keys() & set(sources))

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def complete(scan: Scan, fingerprint: str) -> bool:
    """Whether the source is complete in the generation of this fingerprint."""
    return covers(scan, fingerprint) and (scan.done or scan.reason in REPEATING)


def _due(scan: Scan, shape: str) -> str | None:
    """Why a source must be scanned anew that was last scanned so; None when it need not be.

    A generation that came to those makes only sure, unless a scan was under way that must be done for a reason of its
    own; one that is gone asks for nothing.
    """
    active, *others = shape.split(AND)
    if not covers(scan, active):
        return "reshaped"
    if all(covers(scan, other) for other in others):
        return None
    return GENERATION if scan.done or scan.reason in REPEATING else scan.reason


def _check(job: Job) -> None:
    if job.void:
        raise ScanVoid(job.scan.source)
