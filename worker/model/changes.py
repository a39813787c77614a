"""What comes in: the steps of the stream, and documents to be looked at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bson import Timestamp

from worker.model.keys import DocKey

Document = Mapping[str, object]
"""A source document as BSON decodes it: any field may be missing or of any type."""

Token = Mapping[str, object]
"""A resume token: opaque, the server's own."""

Outcome = Literal["applied", "unchanged", "deleted", "superseded", "dead_lettered"]
"""What became of a received change; each has exactly one (promise: conservation)."""

Origin = Literal["stream", "removal", "scan", "refresh", "expiry", "repair"]
"""Why a document is looked at; `removal`: its whole collection is gone, or another one stands in its place."""


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
