"""Coalescing: many changes of one document become one piece of work.

A change of the stream, or a removal, waits one window, so that a hot document costs one look a window; what is not
urgent (a scan, a refresh) waits for nothing but stands behind them. A document that is being worked on is not handed
out again until it is released: one publish in flight per document.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from bson import Timestamp

from worker.clock import Clock
from worker.model import Change, DocKey, Origin

URGENT: Final[frozenset[Origin]] = frozenset({"stream", "removal"})
"""What stands before everything else: somebody changed something, and answers are wrong until it is seen."""


@dataclass(frozen=True, slots=True)
class Received:
    """A change with what must be called, once, when its outcome is durable."""

    change: Change
    settled: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Work:
    """One document to look at, and every change that this look answers, oldest first."""

    key: DocKey
    received: tuple[Received, ...]

    @property
    def after(self) -> Timestamp | None:
        """The newest event among the changes: the read must be at least as new."""
        return max((r.change.at for r in self.received if r.change.at is not None), default=None)


@dataclass(slots=True)
class _Waiting:
    """`seen`: somebody looked at it since it last changed, and left it for others."""

    due: float
    received: list[Received]
    seen: bool = False


class Coalescer:
    """Holds what is to be done, at most `capacity` changes of it; beyond, `put` waits."""

    def __init__(self, clock: Clock, window: float, capacity: int) -> None:
        self._clock = clock
        self._window = window
        self._capacity = capacity
        self._urgent: dict[DocKey, _Waiting] = {}  # in the order of `due`, but for what was put back
        self._patient: dict[DocKey, _Waiting] = {}
        self._held: dict[DocKey, _Waiting] = {}  # came in while the document was being worked on
        self._busy: set[DocKey] = set()
        self._unsettled = 0
        self._by_source: Counter[str] = Counter()
        self._closed = False
        self._filled = asyncio.Event()
        self._emptied = asyncio.Condition()

    @property
    def unsettled(self) -> int:
        """How many changes are inside: waiting or being worked on."""
        return self._unsettled

    @property
    def waiting(self) -> int:
        """How many documents wait to be taken."""
        return len(self._urgent) + len(self._patient) + len(self._held)

    def inside(self, source: str) -> Sequence[DocKey]:
        """Documents of a source that wait or are being worked on."""
        keys = dict.fromkeys((*self._urgent, *self._patient, *self._held, *self._busy))
        return [key for key in keys if key.source == source]

    async def put(self, received: Received) -> None:
        """Take in a change; waits while the coalescer is full."""
        if self._unsettled >= self._capacity:
            async with self._emptied:
                await self._emptied.wait_for(lambda: self._unsettled < self._capacity)
        key = received.change.key
        self._unsettled += 1
        self._by_source[key.source] += 1
        if key in self._busy:
            self._add(self._held, received)
        elif received.change.origin in URGENT:
            self._promote(key)
            self._add(self._urgent, received)
        else:
            self._add(self._urgent if key in self._urgent else self._patient, received)
        self._filled.set()

    async def take(self, limit: int, *, urgent_only: bool = False) -> Sequence[Work]:
        """Up to `limit` documents whose time has come, at least one; they are busy until released."""
        while True:
            works = self._due(limit, urgent_only=urgent_only)
            if works:
                return works
            self._filled.clear()
            try:
                async with asyncio.timeout(self._until_due()):
                    await self._filled.wait()
            except TimeoutError:
                continue

    def take_unseen(self, limit: int) -> Sequence[Work]:
        """Up to `limit` documents of urgent changes whose time has come and which nobody has put back as they are now.

        They are busy until released or put back.
        """
        now = self._clock.monotonic()
        unseen = (key for key, waiting in self._urgent.items() if waiting.due <= now and not waiting.seen)
        return [self._hand_out(key) for key in list(islice(unseen, limit))]

    def put_back(self, works: Iterable[Work]) -> None:
        """These documents got no outcome: they wait again, for whoever takes anything."""
        for work in works:
            self._busy.discard(work.key)
            held = self._held.pop(work.key, None)
            newer = [] if held is None else held.received
            now = self._clock.monotonic()
            self._urgent[work.key] = _Waiting(now, [*work.received, *newer], seen=held is None)
        self._filled.set()

    async def release(self, works: Iterable[Work]) -> None:
        """These documents have their outcome: settle every change, and hand out what came in meanwhile."""
        for work in works:
            self._busy.discard(work.key)
            for received in work.received:
                received.settled()
            self._unsettled -= len(work.received)
            self._by_source[work.key.source] -= len(work.received)
            if held := self._held.pop(work.key, None):
                self._urgent[work.key] = held
        self._filled.set()
        async with self._emptied:
            self._emptied.notify_all()

    def close(self) -> None:
        """Hand out nothing more of what only waits its turn (scans, refreshes): whoever wanted it will ask again."""
        self._closed = True

    def abandon(self) -> Mapping[str, int]:
        """Give up whatever is inside, once nobody works on it any more; how many changes of each source that was."""
        left = +self._by_source
        self._by_source.clear()
        self._unsettled = 0
        return left

    async def drained(self) -> None:
        """Wait until nothing is inside, or, once closed, nothing that is still handed out."""
        async with self._emptied:
            await self._emptied.wait_for(self._is_drained)

    def _is_drained(self) -> bool:
        return not (self._urgent or self._held or self._busy or (self._patient and not self._closed))

    def _add(self, shelf: dict[DocKey, _Waiting], received: Received) -> None:
        key = received.change.key
        if waiting := shelf.get(key):
            waiting.received.append(received)
            waiting.seen = False
        else:
            shelf[key] = _Waiting(self._clock.monotonic() + self._window, [received])

    def _promote(self, key: DocKey) -> None:
        """An event makes a patient document urgent; it keeps what it already owes."""
        if waiting := self._patient.pop(key, None):
            waiting.due = self._clock.monotonic() + self._window
            self._urgent[key] = waiting

    def _due(self, limit: int, *, urgent_only: bool) -> list[Work]:
        now = self._clock.monotonic()
        keys = [key for key, waiting in _first(self._urgent, limit) if waiting.due <= now]
        if not (urgent_only or self._closed):
            keys += [key for key, _ in _first(self._patient, limit - len(keys))]
        return [self._hand_out(key) for key in keys]

    def _hand_out(self, key: DocKey) -> Work:
        waiting = self._urgent.pop(key, None) or self._patient.pop(key)
        self._busy.add(key)
        return Work(key, tuple(waiting.received))

    def _until_due(self) -> float | None:
        head = next(iter(self._urgent.values()), None)
        return None if head is None else max(0.0, head.due - self._clock.monotonic())


def _first(shelf: dict[DocKey, _Waiting], limit: int) -> list[tuple[DocKey, _Waiting]]:
    return list(islice(shelf.items(), max(0, limit)))
