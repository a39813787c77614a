"""The simulated database: source documents with their history, and everything that the worker stores.

Plain state, changed at once and never failing; `sim_ports` puts waits and faults in front of it.
"""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bson import Timestamp

from brain.knowledge.chunk import Vector
from brain.knowledge.pin import Pin
from worker.errors import FencedOff, HistoryLost
from worker.generations import Generations
from worker.model import (
    Checkpoint,
    ChunkDraft,
    DeadLetter,
    DocKey,
    DocState,
    Document,
    DocumentChanged,
    Gap,
    Leadership,
    LedgerRow,
    Outcome,
    Passed,
    Position,
    Publication,
    Request,
    Scan,
    SourceArrived,
    SourceGone,
    StoredChunk,
    StreamEvent,
)


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk as it is stored."""

    stored: StoredChunk
    draft: ChunkDraft
    vector: Vector


Chunks = defaultdict[DocKey, dict[str, Row]]


@dataclass(slots=True)
class Database:
    """One database. `checkpointing` is told of every stored position, for the oracle's running checks."""

    pin: Pin
    documents: dict[str, dict[DocKey, Document]]
    seconds: Callable[[], float]
    history: list[tuple[Timestamp, StreamEvent]] = field(default_factory=list[tuple[Timestamp, StreamEvent]])
    latest: dict[DocKey | str, int] = field(default_factory=dict[DocKey | str, int])
    """The place in the history of the newest event of a document, or of a source as a whole."""
    trimmed: int = 0
    """How many of the oldest events the history has forgotten."""
    ledger: dict[DocKey, LedgerRow] = field(default_factory=dict[DocKey, LedgerRow])
    generations: Generations = field(init=False)
    stored: dict[Pin, Chunks] = field(default_factory=dict[Pin, Chunks])
    """The chunks of each generation that lives, and of none that was dropped and removed."""
    letters: dict[DocKey, DeadLetter] = field(default_factory=dict[DocKey, DeadLetter])
    checkpoint: Checkpoint | None = None
    gap: Gap | None = None
    scans: dict[str, Scan] = field(default_factory=dict[str, Scan])
    requests: dict[str, Request] = field(default_factory=dict[str, Request])
    results: dict[str, Mapping[str, object]] = field(default_factory=dict[str, Mapping[str, object]])
    epoch: int = 0
    checkpointing: Callable[[Checkpoint], None] = lambda _checkpoint: None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _last: Timestamp = field(default_factory=lambda: Timestamp(1, 0))

    def __post_init__(self) -> None:
        self.generations = Generations(self.pin)

    @property
    def chunks(self) -> Chunks:
        """The chunks that are searched."""
        return self.of(self.generations.active)

    def of(self, pin: Pin) -> Chunks:
        """The chunks of one generation."""
        return self.stored.setdefault(pin, defaultdict(dict))

    # --- time and sources

    def now(self) -> Timestamp:
        """The operation time of the last thing that happened."""
        return max(self._last, Timestamp(int(self.seconds()), 0))

    def _tick(self) -> Timestamp:
        now = self.now()
        self._last = Timestamp(now.time, now.inc + 1)
        return self._last

    def record(self, event: StreamEvent) -> None:
        """Let the history say that this happened now."""
        match event:
            case DocumentChanged(key, _):
                self.latest[key] = len(self.history)
            case SourceGone(sources):
                self.latest.update(dict.fromkeys(sources, len(self.history)))
            case SourceArrived(source):
                self.latest[source] = len(self.history)
            case Passed():
                pass
        self.history.append((self._tick(), event))
        self.arrived.set()

    def place(self, position: Position) -> int:
        """The place in the history of the first event after a position."""
        if position.token is not None:
            return int(str(position.token["n"]))
        return bisect_left(self.history, position.at, key=lambda entry: entry[0])

    def index(self, position: Position) -> int:
        """The same, for one who reads on from there. Raises HistoryLost when it is forgotten."""
        index = self.place(position)
        if index < self.trimmed:
            message = f"event {index} is no longer in the history"
            raise HistoryLost(message)
        return index

    # --- what the worker stores

    def fence(self, leadership: Leadership) -> None:
        """Refuse a writer of an older epoch."""
        if leadership.epoch != self.epoch:
            message = f"epoch {leadership.epoch} is over, {self.epoch} leads"
            raise FencedOff(message)

    def states(self, keys: Sequence[DocKey], live: Sequence[Pin]) -> Mapping[DocKey, DocState]:
        """Everything that is stored of each document, for a leader of these generations."""
        seen: defaultdict[str, set[str | None]] = defaultdict(set)
        for row in self.ledger.values():
            if row.refs:
                for ref, face in zip(row.refs, row.seen, strict=True):
                    seen[ref].add(face)
        return {key: self._state(key, live, frozenset(seen[str(key)])) for key in keys}

    def _state(self, key: DocKey, live: Sequence[Pin], seen: frozenset[str | None]) -> DocState:
        active, *others = (tuple(row.stored for row in self.of(pin).get(key, {}).values()) for pin in live)
        beside = dict(zip(live[1:], others, strict=True))
        return DocState(self.ledger.get(key), active, self.letters.get(key), seen, beside)

    def publish(self, publication: Publication, active: Pin) -> Outcome:
        """Store one publication of a leader whose active pin is this, as `KnowledgeStore.publish` describes."""
        self._tick()  # our own writes are operations too
        delta = publication.delta
        old = self.ledger.get(delta.key)
        if old is not None and delta.version < old.version <= self.now():
            return "superseded"
        self._put_chunks(active, publication)
        for pin, other in publication.beside.items():
            self._put_chunks(pin, other)
        if delta.clears_dead_letter:
            self.letters.pop(delta.key, None)
        if delta.ledger is not None:
            self._put_row(delta.ledger, old)
        if delta.refresh_neighbours:
            self._owe(delta.key, delta.version)
        return "deleted" if delta.ledger is not None and delta.ledger.deleted else "applied"

    def _put_chunks(self, pin: Pin, publication: Publication) -> None:
        delta, rows = publication.delta, self.of(pin)[publication.delta.key]
        for draft in delta.write:
            rows[draft.id] = Row(_stored(draft, pin, delta.version), draft, publication.vectors[draft.text_hash])
        for draft in delta.rewrite:
            rows[draft.id] = Row(_stored(draft, pin, delta.version), draft, rows[draft.id].vector)
        for id_ in delta.remove:
            rows.pop(id_, None)  # a transaction whose answer was lost runs again

    def _put_row(self, row: LedgerRow, old: LedgerRow | None) -> None:
        owed = old.stale_since if old is not None else None
        again = old is not None and old.version == row.version  # an answer was lost: nothing is decided anew
        stale = owed if owed is not None and (again or row.version < owed <= self.now()) else None
        shown: set[tuple[str, str | None]] = set() if old is None else set(zip(old.refs, old.seen, strict=True))
        rows = (*self.ledger.values(), row) if row.refs else ()
        faces = {str(other.key): other.face for other in rows}
        strange = {(ref, face) for ref, face in zip(row.refs, row.seen, strict=True) if faces.get(ref) != face}
        if stale is None and not again and strange - shown:
            stale = row.version
        self.ledger[row.key] = replace(row, stale_since=stale)

    def _owe(self, key: DocKey, version: Timestamp) -> None:
        name = str(key)
        for other in self.ledger.values():
            if name in other.refs and other.key != key:
                since = max(version, other.stale_since or version)
                self.ledger[other.key] = replace(other, stale_since=since)

    def bury(self, letter: DeadLetter) -> None:
        """Store a dead letter; the debt is forgotten."""
        self.letters[letter.key] = letter
        if (row := self.ledger.get(letter.key)) is not None:
            self.ledger[letter.key] = replace(row, stale_since=None)


def _stored(draft: ChunkDraft, pin: Pin, version: Timestamp) -> StoredChunk:
    return StoredChunk(draft.id, draft.text_hash, draft.content_hash, pin.model, pin.dimensions, version)
