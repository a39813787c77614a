"""Every port of the pipeline over the simulated database, with the weather in between."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bson import Timestamp

from brain.knowledge.chunk import Vector, text_hash
from brain.knowledge.pin import Pin
from tests.support.sim_database import Database
from tests.support.sim_source import readable
from tests.support.sim_weather import Weather
from tests.support.virtual import VirtualClock
from worker.errors import Unreachable
from worker.generations import Act, Generations, changed
from worker.model import (
    AuditedChunk,
    Checkpoint,
    DeadLetter,
    DocKey,
    DocState,
    Gap,
    Leadership,
    Outcome,
    Passed,
    Position,
    Publication,
    Reading,
    Request,
    Scan,
    Stray,
    StreamItem,
)

IDLE = 1.0


class _Port:
    def __init__(self, database: Database, weather: Weather) -> None:
        self._db = database
        self._weather = weather


class SimStream(_Port):
    """Implements ChangeStream; may tell events again after it was opened anew, and forget its history."""

    async def now(self) -> Timestamp:
        """The time of the last thing that happened."""
        return await self._weather.read(self._db.now)

    async def clock(self) -> datetime | None:
        """The true time."""
        return await self._weather.read(VirtualClock().now)

    async def oldest(self) -> Timestamp | None:
        """Not known."""
        return await self._weather.read(lambda: None)

    async def follow(self, position: Position) -> AsyncIterator[StreamItem]:
        """Events in their order, and the faults of the weather."""
        await self._weather.wait()
        index = self._db.index(position)
        if index and self._weather.strikes(self._weather.rates.replay):
            index = self._weather.rng.randint(max(self._db.trimmed, index - 10), index)
        while True:
            if self._weather.strikes(self._weather.rates.stream):
                message = "the cursor died"
                raise Unreachable(message)
            if self._weather.strikes(self._weather.rates.forget):
                self._db.trimmed = len(self._db.history)
            if index < len(self._db.history):
                self._db.index(Position(Timestamp(1, 0), {"n": index}))
                at, event = self._db.history[index]
                index += 1
                yield StreamItem(event, Position(at, {"n": index}))
            elif not await self._news():
                yield StreamItem(Passed(), Position(self._db.now(), {"n": index}))

    async def _news(self) -> bool:
        self._db.arrived.clear()
        try:
            async with asyncio.timeout(IDLE):
                await self._db.arrived.wait()
        except TimeoutError:
            return False
        return True


class SimDocuments(_Port):
    """Implements Documents."""

    async def read(self, source: str, ids: Sequence[DocKey], after: Timestamp | None = None) -> Reading:
        """All documents as of one moment."""

        def answer() -> Reading:
            found = {key: document for key in ids if (document := self._db.documents[source].get(key)) is not None}
            whole = {key: document for key, document in found.items() if readable(document)}
            damaged = {key: text_hash(repr(found[key])) for key in found.keys() - whole.keys()}
            return Reading(whole, self._db.now(), damaged)

        return await self._weather.read(answer)

    async def page(self, source: str, after: DocKey | None, limit: int) -> Sequence[DocKey]:
        """In the order of the keys."""

        def answer() -> Sequence[DocKey]:
            keys = sorted(self._db.documents[source], key=lambda key: key.typed)
            return [key for key in keys if after is None or key.typed > after.typed][:limit]

        return await self._weather.read(answer)

    async def absent(self, source: str, keys: Sequence[DocKey]) -> Sequence[DocKey]:
        """Those that no document has."""
        return await self._weather.read(lambda: [key for key in keys if key not in self._db.documents[source]])

    async def estimate(self, source: str) -> int:
        """Exact here."""
        return await self._weather.read(lambda: len(self._db.documents[source]))


class SimStore(_Port):
    """Implements KnowledgeStore, for a leader that was made for the generations of its begin."""

    def __init__(self, database: Database, weather: Weather) -> None:
        super().__init__(database, weather)
        self._live = database.generations.live

    async def states(self, keys: Sequence[DocKey]) -> Mapping[DocKey, DocState]:
        """As of one moment."""
        return await self._weather.read(lambda: self._db.states(keys, self._live))

    async def vectors(self, text_hashes: Sequence[str], pin: Pin | None = None) -> Mapping[str, Vector]:
        """Of any document."""
        hashes = frozenset(text_hashes)

        def answer() -> Mapping[str, Vector]:
            wanted = pin or self._live[0]
            alike = [one for one in self._live if (one.model, one.dimensions) == (wanted.model, wanted.dimensions)]
            rows = (row for one in alike for rows in self._db.of(one).values() for row in rows.values())
            return {row.stored.text_hash: row.vector for row in rows if row.stored.text_hash in hashes}

        return await self._weather.read(answer)

    async def publish(self, publications: Sequence[Publication], leadership: Leadership) -> Sequence[Outcome]:
        """All at once, or nothing."""

        def effect() -> Sequence[Outcome]:
            self._db.fence(leadership)
            return [self._db.publish(publication, self._live[0]) for publication in publications]

        return await self._weather.write(effect)

    async def owing(self, sources: Sequence[str], limit: int) -> Sequence[DocKey]:
        """In no order."""

        def answer() -> Sequence[DocKey]:
            rows = (row for row in self._db.ledger.values() if row.key.source in sources)
            return [row.key for row in rows if row.stale_since is not None][:limit]

        return await self._weather.read(answer)

    async def expired(self, now: datetime, sources: Sequence[str], limit: int) -> Sequence[DocKey]:
        """Those with chunks."""

        def answer() -> Sequence[DocKey]:
            rows = (row for row in self._db.ledger.values() if row.expires_at is not None and row.expires_at <= now)
            keys = (row.key for row in rows if row.key.source in sources)
            return [key for key in keys if self._db.chunks.get(key)][:limit]

        return await self._weather.read(answer)

    async def page(self, source: str, after: str | None, limit: int) -> Sequence[DocKey]:
        """In the order of the keys."""

        def answer() -> Sequence[DocKey]:
            living = {row.key for row in self._db.ledger.values() if not row.deleted}
            keys = sorted({*living, *(key for key, rows in self._db.chunks.items() if rows)}, key=str)
            return [key for key in keys if key.source == source and (after is None or str(key) > after)][:limit]

        return await self._weather.read(answer)

    async def audit(self, among: Sequence[object] | None = None) -> AsyncIterator[AuditedChunk]:
        """Every row, all sound."""
        for key, rows in list(self._db.chunks.items()):
            for id_, row in list(rows.items()):
                if among is None or id_ in among:
                    yield AuditedChunk(id_, key.source, key, sound=True, text=row.draft.text, vector=row.vector)

    async def strays(self, source: str) -> AsyncIterator[Stray]:
        """None: the simulation breaks nothing by hand."""
        for stray in ():
            yield stray

    async def sweep_strays(self, source: str, leadership: Leadership) -> int:
        """There are none, or the oracle says so: the simulation breaks nothing by hand."""

        def effect() -> int:
            self._db.fence(leadership)
            return 0

        return await self._weather.write(effect)

    async def discard(self, chunk_ids: Sequence[object], leadership: Leadership, pin: Pin | None = None) -> int:
        """Not simulated."""
        raise NotImplementedError


class SimCheckpoints(_Port):
    """Implements Checkpoints."""

    async def load(self) -> Checkpoint | None:
        """What was stored last."""
        return await self._weather.read(lambda: self._db.checkpoint)

    async def save(self, checkpoint: Checkpoint, leadership: Leadership) -> None:
        """And have it judged."""

        def effect() -> None:
            self._db.fence(leadership)
            self._db.checkpoint = checkpoint
            self._db.checkpointing(checkpoint)

        await self._weather.write(effect)

    async def scans(self) -> Mapping[str, Scan]:
        """Every scan."""
        return await self._weather.read(lambda: dict(self._db.scans))

    async def save_scan(self, scan: Scan, leadership: Leadership) -> None:
        """Fenced."""

        def effect() -> None:
            self._db.fence(leadership)
            self._db.scans[scan.source] = scan

        await self._weather.write(effect)

    async def gap(self) -> Gap | None:
        """The gap to report."""
        return await self._weather.read(lambda: self._db.gap)

    async def save_gap(self, gap: Gap | None, leadership: Leadership) -> None:
        """Fenced."""

        def effect() -> None:
            self._db.fence(leadership)
            self._db.gap = gap

        await self._weather.write(effect)


class SimDeadLetters(_Port):
    """Implements DeadLetters."""

    async def put(self, letter: DeadLetter, leadership: Leadership) -> None:
        """Fenced."""

        def effect() -> None:
            self._db.fence(leadership)
            self._db.bury(letter)

        await self._weather.write(effect)

    async def all(self) -> Sequence[DeadLetter]:
        """Every letter."""
        return await self._weather.read(lambda: list(self._db.letters.values()))

    async def count(self) -> int:
        """How many."""
        return await self._weather.read(lambda: len(self._db.letters))

    async def drop(self, keys: Sequence[DocKey], leadership: Leadership) -> int:
        """Fenced."""

        def effect() -> int:
            self._db.fence(leadership)
            return sum(self._db.letters.pop(key, None) is not None for key in keys)

        return await self._weather.write(effect)


class SimLease(_Port):
    """Implements Lease: whoever asks leads, and the one before is fenced off."""

    async def acquire(self) -> Leadership | None:
        """A new epoch."""
        self._db.epoch += 1
        return Leadership(self._db.epoch)

    async def renew(self, leadership: Leadership) -> None:
        """Fenced."""
        await self._weather.write(lambda: self._db.fence(leadership))

    async def release(self, leadership: Leadership) -> None:
        """Fenced."""
        await self._weather.write(lambda: self._db.fence(leadership))


class SimPins(_Port):
    """Implements Pins."""

    async def load(self) -> Generations:
        """As they are."""
        return await self._weather.read(lambda: self._db.generations)

    async def change(self, act: Act, pin: Pin, leadership: Leadership, turn: int | None = None) -> Generations:
        """Fenced."""

        def effect() -> Generations:
            self._db.fence(leadership)
            self._db.generations = changed(self._db.generations, act, pin, turn)
            return self._db.generations

        return await self._weather.write(effect)

    async def clear(self, leadership: Leadership) -> Sequence[str]:
        """Fenced."""

        def effect() -> Sequence[str]:
            self._db.fence(leadership)
            leaving = self._db.generations.leaving
            for pin in [pin for pin in self._db.stored if pin.collection in leaving]:
                del self._db.stored[pin]
            self._db.generations = replace(self._db.generations, leaving=())
            return leaving

        return await self._weather.write(effect)


class SimRequests(_Port):
    """Implements Requests."""

    async def submit(self, kind: str, arguments: Mapping[str, object]) -> str:
        """Not simulated: the writer leaves requests."""
        raise NotImplementedError

    async def take(self, leadership: Leadership, *, pins: bool = False) -> Request | None:
        """The oldest of its lane that is not finished."""

        def effect() -> Request | None:
            self._db.fence(leadership)
            lane = (one for one in self._db.requests.values() if (one.kind == "pin") == pins)
            return next((one for one in lane if one.id not in self._db.results), None)

        return await self._weather.write(effect)

    async def finish(self, request: Request, result: Mapping[str, object], leadership: Leadership) -> None:
        """Fenced."""

        def effect() -> None:
            self._db.fence(leadership)
            self._db.results[request.id] = result

        await self._weather.write(effect)

    async def result(self, request_id: str) -> Mapping[str, object] | None:
        """Or None."""
        return await self._weather.read(lambda: self._db.results.get(request_id))
