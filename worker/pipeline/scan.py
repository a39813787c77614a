"""Scan: every document of a source is looked at once, beside the live stream and through the same steps.

A scan keeps its place by document id, so a restart goes on where every outcome was durable. When every document was
looked at, the sweep looks at every stored one that has no document any more: what was deleted while nobody watched goes
too. It also looks at what is on its way when it begins: that may have been read before the collection was dropped, and
would be stored after the sweep has passed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from worker.model import Change, DocKey, Origin, Scan
from worker.pipeline.around import Around
from worker.pipeline.watermark import Watermark
from worker.ports import DeadLetters, Documents, KnowledgeStore

PAGE: Final = 2_000
"""Ids of one page: few pages, since the embedded server reads the collection for each (0.4 s for 5,000 documents)."""

AHEAD: Final = 1000
"""Changes that a scan may have in flight: the stream shares the coalescer and must find room."""

KEEP_EVERY: Final = 1.0
"""Seconds between two stored places of a scan."""


class Outlet(Protocol):
    """Where a scan puts the documents that it wants looked at."""

    async def look(self, change: Change, settled: Callable[[], None]) -> None:
        """Look at a document; `settled` is called when its outcome is durable. Returns when there is room for more."""
        ...

    def inside(self, source: str) -> Sequence[DocKey]:
        """Documents of a source that are on their way now."""
        ...


class Scanner:
    """Scans sources, one at a time."""

    def __init__(
        self, documents: Documents, store: KnowledgeStore, letters: DeadLetters, outlet: Outlet, around: Around
    ) -> None:
        self._documents = documents
        self._store = store
        self._letters = letters
        self._outlet = outlet
        self._around = around

    async def run(self, scan: Scan, keep: Callable[[Scan], Awaitable[None]]) -> Scan:
        """Bring a scan to its end and return it, not yet marked done.

        `keep` stores where it is, now and then; what it raises ends the scan. Raises Fatal when a person must act.
        """
        scan = replace(scan, started_at=scan.started_at or self._around.clock.now())
        await keep(scan)
        scan = await self._look_at_all(scan, keep)
        await self._around.probe.reached("scanned")
        await self.sweep(scan)
        await self._around.probe.reached("swept")
        return replace(scan, after=None, finished_at=self._around.clock.now())

    async def _look_at_all(self, scan: Scan, keep: Callable[[Scan], Awaitable[None]]) -> Scan:
        flight = _Flight(scan, self._around, keep)
        after = scan.after
        while page := await self._page(scan.source, after):
            for key in page:
                await flight.put(key, self._outlet)
            after = page[-1]
            await self._around.probe.reached("scanning")
        await flight.landed()
        await keep(flight.scan)
        return flight.scan

    async def sweep(self, scan: Scan, origin: Origin = "scan") -> None:
        """Look at every stored document of the scan's source that is not there any more; durable when it returns."""
        flight = _Flight(scan, self._around, keep=None, origin=origin)
        for key in self._outlet.inside(scan.source):
            await flight.put(key, self._outlet)
        letters = await self._around.persist("database", self._letters.all)
        buried = [letter.key for letter in letters if letter.key.source == scan.source]
        for key in await self._absent(scan.source, buried):
            await flight.put(key, self._outlet)
        after: str | None = None
        while stored := await self._stored(scan.source, after):
            await self._around.probe.reached("sweeping")
            for key in await self._absent(scan.source, stored):
                await flight.put(key, self._outlet)
            after = str(stored[-1])
        await flight.landed()

    async def _page(self, source: str, after: DocKey | None) -> Sequence[DocKey]:
        return await self._around.persist("database", lambda: self._documents.page(source, after, PAGE))

    async def _stored(self, source: str, after: str | None) -> Sequence[DocKey]:
        return await self._around.persist("database", lambda: self._store.page(source, after, PAGE))

    async def _absent(self, source: str, keys: Sequence[DocKey]) -> Sequence[DocKey]:
        return await self._around.persist("database", lambda: self._documents.absent(source, keys))


class _Flight:
    """What a scan has put out and not got back yet; at most AHEAD of it."""

    def __init__(
        self, scan: Scan, around: Around, keep: Callable[[Scan], Awaitable[None]] | None, origin: Origin = "scan"
    ) -> None:
        self._start = scan
        self._origin: Origin = origin
        self._around = around
        self._keep = keep
        self._kept_at = around.clock.monotonic()
        self._watermark: Watermark[DocKey] = Watermark(scan.after)
        self._out = 0
        self._moved = asyncio.Event()

    @property
    def scan(self) -> Scan:
        """The scan as far as it is durable: what landed beyond a gap is looked at again after a restart."""
        durable = self._out - self._watermark.ahead
        return replace(self._start, after=self._watermark.low, seen=self._start.seen + durable)

    async def put(self, key: DocKey, outlet: Outlet) -> None:
        await self._until(lambda: self._watermark.waiting < AHEAD)
        ticket = self._watermark.open(key, self._around.clock.monotonic())
        self._out += 1

        def settled() -> None:
            self._watermark.close(ticket)
            self._moved.set()

        await outlet.look(Change(key, self._origin), settled)

    async def landed(self) -> None:
        await self._until(lambda: self._watermark.waiting == 0)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._moved.clear()
            await self._moved.wait()
            if self._keep is not None and self._around.clock.monotonic() - self._kept_at >= KEEP_EVERY:
                await self._keep(self.scan)
                await self._around.probe.reached("kept")
                self._kept_at = self._around.clock.monotonic()
