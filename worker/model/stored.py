"""What is stored of a document: its ledger row, its chunks, its dead letter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from bson import Timestamp

from brain.knowledge.chunk import Vector
from brain.knowledge.pin import Pin
from worker.model.keys import DocKey

_NOT_TOLD: Final = Timestamp(0, 0)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk row as it is stored, without text and vector; `version` is that of the document it was written from."""

    id: str
    text_hash: str
    content_hash: str
    model: str
    dimensions: int
    version: Timestamp = _NOT_TOLD


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
