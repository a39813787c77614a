"""The desk: where every change comes in, whoever found it.

It opens the ticket that the watermark waits for, counts the change as received, and puts it into the coalescer.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from worker.model import Change, DocKey, Origin, Position
from worker.pipeline.around import Around
from worker.pipeline.coalesce import Coalescer, Received
from worker.pipeline.scan_book import ScanBook
from worker.pipeline.watermark import Watermark


class Desk:
    """Takes changes from the tail, from scans and from the leader's other duties."""

    def __init__(self, coalescer: Coalescer, book: ScanBook, start: Position, around: Around) -> None:
        self._coalescer = coalescer
        self._book = book
        self._around = around
        self.watermark: Watermark[Position] = Watermark(start)

    async def changed(self, change: Change, position: Position) -> None:
        """Take in a change of the stream."""
        ticket = self.watermark.open(position, self._committed(change))
        await self.look(change, lambda: self.watermark.close(ticket))

    def _committed(self, change: Change) -> float:
        """When the change was committed, on this process's monotonic clock: a backlog is as old as its oldest event.

        The clock's wall time is the database's, as the event's is; what lies in its future was committed now.
        """
        clock = self._around.clock
        ago = 0.0 if change.wall is None else (clock.now() - change.wall).total_seconds()
        return clock.monotonic() - max(0.0, ago)

    def passed(self, position: Position) -> None:
        """Take in a step of the stream that owes nothing."""
        self.watermark.skip(position, self._around.clock.monotonic())

    async def rescan(self, sources: Sequence[str], reason: str) -> None:
        """Note that sources must be scanned; readiness hears of it before the stream goes on."""
        await self._book.want(sources, reason)
        self._around.health.scans_pending(self._book.urgent)

    async def look(self, change: Change, settled: Callable[[], None]) -> None:
        """Take in any change; `settled` is called when its outcome is durable."""
        await self._coalescer.put(Received(change, settled))
        self._around.meter.received(change.key.source)  # one that is cut off while it waits for room never came in

    def inside(self, source: str) -> Sequence[DocKey]:
        """Documents of a source that are on their way now."""
        return self._coalescer.inside(source)

    async def attend(self, keys: Iterable[DocKey], origin: Origin) -> None:
        """Have documents looked at, and wait until all have their outcome."""
        left = dict.fromkeys(keys)
        done = asyncio.Event()

        def settled(key: DocKey) -> None:
            del left[key]
            if not left:
                done.set()

        for key in list(left):
            await self.look(Change(key, origin), lambda key=key: settled(key))
        if left:
            await done.wait()
