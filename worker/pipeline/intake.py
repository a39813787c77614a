"""Intake: the tail of the stream becomes changes to look at.

Around the driver's own single resume stands the loop that opens the stream again, with backoff, from the last step
taken in. The position that is *stored* is another one: the watermark's, before which every outcome is durable.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from bson import Timestamp

from brain.knowledge.log import log
from worker.backoff import Backoff
from worker.errors import HistoryLost, Retryable
from worker.model import Change, DocumentChanged, Passed, Position, SourceArrived, SourceGone, StreamItem
from worker.pipeline.around import Around
from worker.ports import ChangeStream

_logger = logging.getLogger(__name__)

_BASE: Final = 0.5  # seconds; Debezium waits 1 s doubling to 120 s, a worker that promises one second starts sooner
_CAP: Final = 60.0


Lost = Callable[[Timestamp, Timestamp, Sequence[str]], Awaitable[None]]
"""What lies between these times is lost, and these sources are about to be scanned."""


async def _untold(_since: Timestamp, _until: Timestamp, _sources: Sequence[str]) -> None:
    """Nobody reports the gap."""


class Inlet(Protocol):
    """Where the tail puts what it finds."""

    async def changed(self, change: Change, position: Position) -> None:
        """A document changed; returns when there is room for more."""
        ...

    def passed(self, position: Position) -> None:
        """The stream moved and owes nothing."""
        ...

    async def rescan(self, sources: Sequence[str], reason: str) -> None:
        """These sources must be scanned; durable when it returns."""
        ...


class Tail:
    """Follows the stream for ever, from a position on; `lost` is told of each gap, before its scans are noted."""

    def __init__(
        self,
        stream: ChangeStream,
        sources: Sequence[str],
        inlet: Inlet,
        around: Around,
        lost: Lost = _untold,
    ) -> None:
        self._lost = lost
        self._stream = stream
        self._sources = sources
        self._inlet = inlet
        self._around = around

    async def follow(self, position: Position) -> None:
        """Never returns. Raises Fatal when a person must act."""
        backoff = Backoff(self._around.rng, base=_BASE, cap=_CAP)
        try:
            while True:
                wait: float | None = None
                try:
                    async for item in self._stream.follow(position):
                        if backoff.failures:
                            backoff.reset()
                            self._around.health.resume("stream")
                        position = item.position
                        await self._take(item)
                    self._around.meter.reopened("invalidated")
                except HistoryLost as error:
                    log(_logger, logging.ERROR, "history_lost", f"{error}: every source is scanned again")
                    self._around.meter.reopened("history_lost")
                    position = await self._start_over(error.since or position.at)
                except Retryable as error:
                    self._around.meter.reopened(type(error).__name__)
                    self._around.health.pause("stream", str(error))
                    wait = error.retry_after
                # However it ended: one that ends again and again at once must not keep a processor busy.
                await self._around.clock.sleep(wait or backoff.next())
        finally:
            self._around.health.resume("stream")  # who leads next sees for himself

    async def _take(self, item: StreamItem) -> None:
        self._around.health.stream_moved(item.behind)
        await self._around.probe.reached("event")
        match item.event:
            case DocumentChanged(key, wall):
                await self._inlet.changed(Change(key, "stream", item.position.at, wall), item.position)
            case SourceGone(sources, operation):
                await self._rescan(sources, operation)
                self._inlet.passed(item.position)
            case SourceArrived(source, gone):
                await self._rescan([source] if gone is None else [source, gone], "renamed_in")
                self._inlet.passed(item.position)
            case Passed(operation):
                if operation is not None:
                    self._around.meter.ignored(operation)
                self._inlet.passed(item.position)

    async def _start_over(self, since: Timestamp) -> Position:
        """The history is gone: begin at the present and scan everything, so that what was missed is found.

        The position is taken before the scans are noted, and those before anything is stored from it.
        """
        now = await self._around.persist("stream", self._stream.now)
        await self._lost(since, now, self._sources)
        await self._rescan(self._sources, "history_lost")
        position = Position(now)
        self._inlet.passed(position)
        return position

    async def _rescan(self, sources: Sequence[str], reason: str) -> None:
        await self._around.persist("database", lambda: self._inlet.rescan(sources, reason))
