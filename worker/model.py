"""The values that cross the rooms.

Frozen, without I/O; data flows through them one way:

    StreamItem ─▶ Change ─▶ Work ─▶ Reading ─▶ Shaped ─▶ Delta ─▶ Publication ─▶ Outcome
    (tail, scan)  (intake)  (coalesce) (read)  (shape)   (diff)   (embed)        (publish)

A version is the operation time of the read that fetched the document (design decision 3), a `bson.Timestamp`.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bson import ObjectId, Timestamp, json_util
from bson.binary import Binary

from brain.knowledge.chunk import Metadata, Vector
from brain.knowledge.keys import is_uuid, typed_id
from brain.knowledge.pin import Pin
from worker.errors import Poison

Document = Mapping[str, object]
"""A source document as BSON decodes it: any field may be missing or of any type."""

Token = Mapping[str, object]
"""A resume token: opaque, the server's own."""

Outcome = Literal["applied", "unchanged", "deleted", "superseded", "dead_lettered"]
"""What became of a received change; each has exactly one (promise: conservation)."""

Origin = Literal["stream", "removal", "scan", "refresh", "expiry", "repair"]
"""Why a document is looked at; `removal`: its whole collection is gone, or another one stands in its place."""


def id_text(raw: object) -> str:
    """The string form of a document id, as stored in `docId`: not unique across types."""
    if isinstance(raw, Binary) and is_uuid(raw):
        return str(uuid.UUID(bytes=bytes(raw)))
    if isinstance(raw, ObjectId | str | int):
        return str(raw)
    return json_util.dumps(raw)


@dataclass(frozen=True, slots=True)
class DocKey:
    """Which document: its collection and its id. `raw` is the id as BSON holds it, `typed` makes it comparable."""

    source: str
    typed: str
    raw: object = field(compare=False)

    @classmethod
    def of(cls, source: str, raw: object) -> "DocKey":
        """The key of the document with this `_id`."""
        raw = Binary.from_uuid(raw) if isinstance(raw, uuid.UUID) else raw  # as the driver's seam decodes it
        return cls(source, typed_id(raw), raw)

    def __str__(self) -> str:
        return f"{self.source}/{self.typed}"


# --- intake -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentChanged:
    """A document was inserted, updated, replaced or deleted: the event says which one, never what is in it."""

    key: DocKey
    wall: datetime | None


@dataclass(frozen=True, slots=True)
class SourceGone:
    """Watched collections were dropped or renamed away."""

    sources: tuple[str, ...]
    operation: str


@dataclass(frozen=True, slots=True)
class SourceArrived:
    """A collection was renamed into a watched name: it must be scanned; `gone` is a watched name that it had before."""

    source: str
    gone: str | None = None


@dataclass(frozen=True, slots=True)
class Passed:
    """The stream moved without anything for us: idle (None), or an operation of no consequence (counted by name)."""

    operation: str | None = None


StreamEvent = DocumentChanged | SourceGone | SourceArrived | Passed


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the stream: resume after `token` where there is one, else start at the time `at`.

    `at` is never later than the place itself, so that it can be compared with the oldest entry of the history.
    """

    at: Timestamp
    token: Token | None = None


@dataclass(frozen=True, slots=True)
class StreamItem:
    """One step of the stream: what happened, and the position from which the next step follows.

    `behind` is how many seconds that position was behind the database's present when it was told, by the database's
    clock alone.
    """

    event: StreamEvent
    position: Position
    behind: float = 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """A document to look at: it may have changed at `at` or before (None: no event, as in a scan)."""

    key: DocKey
    origin: Origin
    at: Timestamp | None = None
    wall: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """Documents as of one operation time; a key that was asked for and is missing does not exist then.

    `unreadable`: documents that exist and cannot be read (damaged BSON, or larger than what the server can send), with
    the SHA-256 of their bytes in hex.
    """

    documents: Mapping[DocKey, Document]
    at: Timestamp
    unreadable: Mapping[DocKey, str] = field(default_factory=dict[DocKey, str])


# --- shape ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """One chunk to be: `name` is stable under edits elsewhere in the document, `text` is exactly what is embedded."""

    name: str
    text: str
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Shaped:
    """What a document says now. No parts: it is hidden, or says nothing.

    `refs` are the documents whose face appears in the text, and `faces` those faces as they were read for it (a ref
    that is not in it showed none); `face` is what other documents' texts say of this one (a trick's name, say), so that
    a change of it refreshes them; `expires_at` is when it leaves without any write; `oddities` names the odd values
    that were met (a closed set of words, for counting).
    """

    parts: tuple[Part, ...] = ()
    refs: tuple[DocKey, ...] = ()
    face: str | None = None
    expires_at: datetime | None = None
    oddities: tuple[str, ...] = ()
    faces: Mapping[DocKey, str | None] = field(default_factory=dict[DocKey, str | None])


# --- stored state -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk row as it is stored, without text and vector."""

    id: str
    text_hash: str
    content_hash: str
    model: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class AuditedChunk:
    """A chunk row as an auditor sees it.

    `id` is whatever the row holds, since a row written by hand may hold anything; `owner` is the key of its document,
    None when no document that is stored is; `sound` says that it names that document rightly, that the text has its
    stored hash, and that the vector has its stored width, is finite and not zero. `metadata` is every field that the
    content hash covers beside the text; None: not told.
    """

    id: object
    source: str
    owner: DocKey | None
    sound: bool
    text: str = field(default="", repr=False)
    content_hash: str = ""
    metadata: Mapping[str, object] | None = field(default=None, repr=False)
    vector: Vector | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Stray:
    """A chunk row that no stored document owns: its id, whatever that is, and the owner that it names, if any."""

    id: object
    owner: str | None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The ledger's row of a document: the version that is stored, or the tombstone of what was.

    `seen` holds, in the order of `refs`, the face of each that the stored text shows. `stale_since` is a debt: a
    document named in `refs` may have another face since that time, and a read at least as new has not been published
    yet. The store writes it, in the transaction that publishes, so a crash cannot forget it.

    A tombstone keeps the face of a document that is there and says nothing; one that is gone has none.
    """

    key: DocKey
    version: Timestamp
    deleted: bool = False
    face: str | None = None
    refs: tuple[str, ...] = ()
    expires_at: datetime | None = None
    seen: tuple[str | None, ...] = ()
    stale_since: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A document that could not be processed.

    Which version, why (a word, never content), and how often it was tried as it is: `digest` is of its content, so
    that the tries of another content are counted anew.
    """

    key: DocKey
    version: Timestamp
    digest: str
    reason: str
    detail: str
    tries: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class DocState:
    """Everything that is stored of one document.

    `chunks` are those under the active pin, `beside` those of the other generation, where one lives. `seen_as` holds
    the faces of it that the stored texts of others show (their `seen`), None among them where one shows none.
    """

    ledger: LedgerRow | None = None
    chunks: tuple[StoredChunk, ...] = ()
    dead: DeadLetter | None = None
    seen_as: frozenset[str | None] = frozenset()
    beside: Mapping[Pin, tuple[StoredChunk, ...]] = field(default_factory=dict[Pin, tuple[StoredChunk, ...]])


# --- diff and publish -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk as it should be stored, without its vector."""

    id: str
    text: str
    metadata: Metadata
    text_hash: str
    content_hash: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Delta:
    """What must be written so that the stored state of one document becomes f(document).

    `write` needs vectors; `rewrite` keeps the stored vector and replaces the rest of the row; `remove` holds chunk ids.
    `ledger` is None when nothing about the document needs storing. `refresh_neighbours` says that a document that
    refers to this one may show another face than it has now. `beside` says the same of the chunks in the other
    generation, where one lives (there is one ledger for all), or why the document cannot be in it.
    """

    key: DocKey
    version: Timestamp
    write: tuple[ChunkDraft, ...] = ()
    rewrite: tuple[ChunkDraft, ...] = ()
    remove: tuple[str, ...] = ()
    kept: int = 0
    ledger: LedgerRow | None = None
    refresh_neighbours: bool = False
    clears_dead_letter: bool = False
    beside: "Mapping[Pin, Delta | Poison]" = field(default_factory=dict[Pin, "Delta | Poison"])

    @property
    def empty(self) -> bool:
        """Nothing to write at all."""
        written = self.write or self.rewrite or self.remove
        if self.ledger is not None or written or self.clears_dead_letter or self.refresh_neighbours:
            return False
        return all(isinstance(other, Delta) and other.empty for other in self.beside.values())

    @property
    def texts(self) -> int:
        """How many texts need a vector, in every generation."""
        return len(self.write) + sum(other.texts for other in self.beside.values() if isinstance(other, Delta))

    @property
    def rows(self) -> int:
        """How many chunk rows are written or removed, in every generation."""
        others = sum(other.rows for other in self.beside.values() if isinstance(other, Delta))
        return len(self.write) + len(self.rewrite) + len(self.remove) + others


@dataclass(frozen=True, slots=True)
class Publication:
    """A delta with the vector of every text hash in `delta.write`: ready to be stored in one transaction.

    `beside` holds those of the other generation, which are stored in the same transaction or not at all.
    """

    delta: Delta
    vectors: Mapping[str, Vector]
    beside: "Mapping[Pin, Publication]" = field(default_factory=dict[Pin, "Publication"])


# --- durable positions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The stored position of the stream: everything before it has a durable outcome."""

    position: Position
    saved_at: datetime


@dataclass(frozen=True, slots=True)
class Scan:
    """The state of the scan of one source.

    `shape` fingerprints what shaped it (chunker version, model, limits): another fingerprint means a new scan is due.
    `after` is the id up to which every document has a durable outcome; `done` says that orphans were looked for too.
    """

    source: str
    reason: str
    shape: str
    done: bool
    after: DocKey | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Leadership:
    """A held lease: every write carries its epoch, and the database refuses those of an older one."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Request:
    """A piece of work that a command left for the leader.

    `backfill` {sources}: scan them; `look` {keys: [{source, id}], discard: [chunk ids]}: remove these chunk rows, then
    look at these documents again; `forget` {keys}: drop their dead letters; `pin` {act, pin, turn}: change the
    generations. `again`: a former leader has begun it.
    """

    id: str
    kind: str
    arguments: Mapping[str, object]
    again: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a call to the embedder may cost, counted beforehand: its UTC day (ISO date), its id and US dollars."""

    day: str
    id: str
    usd: float
