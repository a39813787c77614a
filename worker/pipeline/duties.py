"""What a leader does by the clock.

Each duty runs for ever and is a task of its own; one that dies ends the worker.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final, cast

from worker.errors import PinRefused
from worker.generations import ordered, pin_of
from worker.model import Checkpoint, DocKey, Leadership, Origin, Position, Request
from worker.pipeline.around import Around
from worker.pipeline.desk import Desk
from worker.pipeline.scan_book import ScanBook
from worker.ports import Checkpoints, DeadLetters, KnowledgeStore, Lease, Pins, Requests

CHECKPOINT_EVERY: Final = 1.0  # seconds: what a kill -9 makes the next start read again
RENEW_EVERY: Final = 3.0  # seconds: a lease is believed for ten without a renewal
DEBTS_EVERY: Final = 0.5
EXPIRY_EVERY: Final = 5.0
REQUESTS_EVERY: Final = 0.5
RESCAN_CHECK_EVERY: Final = 60.0
PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class Papers:
    """The durable side of a leadership."""

    store: KnowledgeStore
    checkpoints: Checkpoints
    letters: DeadLetters
    lease: Lease
    requests: Requests
    pins: Pins


class Duties:
    """The duties of one leadership; the positions that it stores speak for the sources `followed`."""

    def __init__(
        self,
        papers: Papers,
        desk: Desk,
        book: ScanBook,
        leadership: Leadership,
        around: Around,
        followed: frozenset[str],
    ) -> None:
        self._papers = papers
        self._desk = desk
        self._book = book
        self._leadership = leadership
        self._around = around
        self._followed = followed
        self._saved: Position | None = None
        self.generations_changed = asyncio.Event()

    async def keep_checkpoint(self) -> None:
        """Store the watermark whenever it moved, and tell how far it is behind."""
        while True:
            await self.save_checkpoint()
            self._around.health.watermark(self._desk.watermark.oldest)
            self._around.health.scans_pending(self._book.urgent)
            await self._around.clock.sleep(CHECKPOINT_EVERY)

    async def save_checkpoint(self) -> None:
        """Store the watermark if it moved: everything before it has a durable outcome."""
        position = self._desk.watermark.low
        if position is None or position == self._saved:
            return
        checkpoint = Checkpoint(position, self._around.clock.now(), self._followed)
        await self._around.probe.reached("checkpointing")
        await self._around.persist("database", lambda: self._papers.checkpoints.save(checkpoint, self._leadership))
        await self._around.probe.reached("checkpointed")
        self._saved = position

    async def keep_lease(self) -> None:
        """Renew the lease. Raises FencedOff when another process leads."""
        while True:
            await self._around.clock.sleep(RENEW_EVERY)
            await self._around.persist("database", lambda: self._papers.lease.renew(self._leadership))

    async def pay_debts(self) -> None:
        """Look again at documents whose neighbour changed its face."""
        while True:
            await self.pay_debts_now()
            await self._around.clock.sleep(DEBTS_EVERY)

    async def pay_debts_now(self) -> None:
        """Pay every debt there is."""
        await self._attend_all(partial(self._papers.store.owing, self._book.sources), "refresh", set())

    async def end_what_expires(self) -> None:
        """Look again at documents whose time is over (an event that ended): nothing else would.

        One that nobody can shape any more stays among them; it is looked at once, not every few seconds.
        """
        attended: set[DocKey] = set()
        while True:
            find = partial(self._papers.store.expired, self._around.clock.now(), self._book.sources)
            found = await self._attend_all(find, "expiry", attended)
            attended.intersection_update(found)
            await self._around.clock.sleep(EXPIRY_EVERY)

    async def _attend_all(
        self, find: Callable[[int], Awaitable[Sequence[DocKey]]], origin: Origin, attended: set[DocKey]
    ) -> Sequence[DocKey]:
        """Look at what is found until nothing new is, and return what was found last.

        Those that stay as they are (a dead letter) are not looked at again, and what stands behind a page full of them
        is found too.
        """
        limit = PAGE
        while True:
            found = await self._around.persist("database", partial(find, limit))
            fresh = [key for key in found if key not in attended]
            if not fresh and len(found) < limit:
                return found
            await self._desk.attend(fresh, origin)
            attended.update(fresh)
            limit = PAGE if fresh else limit + PAGE

    async def rescan_by_the_clock(self, every: timedelta) -> None:
        """Scan each source again when its last scan is that old: the safety net under the stream."""
        while True:
            due = self._book.finished_before(self._around.clock.now() - every)
            if due:
                await self._around.persist("database", lambda: self._book.want(due, "scheduled"))  # noqa: B023 - called before `due` moves
            await self._around.clock.sleep(RESCAN_CHECK_EVERY)

    async def serve_requests(self, *, pins: bool = False) -> None:
        """Do what commands left to be done, one at a time; of sources that are not watched, nothing.

        With `pins` the changes of generations, which wait for nothing else.
        """
        take = partial(self._papers.requests.take, self._leadership, pins=pins)
        while True:
            request = await self._around.persist("database", take)
            if request is None:
                await self._around.clock.sleep(REQUESTS_EVERY)
                continue
            result = await self._perform(request)
            await self._around.probe.reached("performed")
            await self._finish(request, result)
            if result.get("changed"):
                self.generations_changed.set()

    async def _finish(self, request: Request, result: Mapping[str, object]) -> None:
        requests, leadership = self._papers.requests, self._leadership
        await self._around.persist("database", lambda: requests.finish(request, result, leadership))

    async def _perform(self, request: Request) -> Mapping[str, object]:
        match request.kind:
            case "backfill":
                sources = [name for name in _names(request.arguments.get("sources")) if self._book.watches(name)]
                # What a former leader began goes on at its place: a restart amid a long backfill repeats little.
                anew = [name for name in sources if not (request.again and self._book.scans(name, "backfill"))]
                await self._around.persist("database", lambda: self._book.want(anew, "backfill"))
                await self._book.done(sources)
                await self.pay_debts_now()
                return {"sources": list(sources)}
            case "look":
                keys = self._book.watched(_keys(request.arguments.get("keys")))
                if rows := _rows(request.arguments.get("discard")):
                    store, leadership = self._papers.store, self._leadership
                    pin = pin_of(request.arguments)
                    await self._around.persist("database", lambda: store.discard(rows, leadership, pin))
                await self._desk.attend(keys, "repair")
                await self.pay_debts_now()
                return {"looked": len(keys)}
            case "forget":
                keys = _keys(request.arguments.get("keys"))
                letters, leadership = self._papers.letters, self._leadership
                dropped = await self._around.persist("database", lambda: letters.drop(keys, leadership))
                return {"dropped": dropped}
            case "pin":
                return await self._change_pin(request.arguments)
            case _:  # a newer command's, or nobody's: taken again at every start, it must not end the worker
                return {"refused": f"this worker knows no request of the kind {request.kind}"}

    async def _change_pin(self, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Change the generations; the leader then begins again with those that live."""
        pins, leadership = self._papers.pins, self._leadership
        try:
            act, pin, turn = ordered(arguments)
            before = await self._around.persist("database", pins.load)
            after = await self._around.persist("database", lambda: pins.change(act, pin, leadership, turn))
        except PinRefused as error:
            return {"failed": str(error)}
        return {"changed": after != before}


def _names(value: object) -> tuple[str, ...]:
    return tuple(name for name in _rows(value) if isinstance(name, str))


def _keys(value: object) -> tuple[DocKey, ...]:
    rows = (cast("Mapping[str, object]", row) for row in _rows(value) if isinstance(row, dict))
    return tuple(DocKey.of(str(row["source"]), row["id"]) for row in rows if "source" in row and "id" in row)


def _rows(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
