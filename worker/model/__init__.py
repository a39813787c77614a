"""The values that cross the rooms.

Frozen, without I/O; data flows through them one way:

    StreamItem ─▶ Change ─▶ Work ─▶ Reading ─▶ Shaped ─▶ Delta ─▶ Publication ─▶ Outcome
    (tail, scan)  (intake)  (coalesce) (read)  (shape)   (diff)   (embed)        (publish)

A version is the operation time of the read that fetched the document, a `bson.Timestamp`: what has no
event of its own (a neighbour renamed, an event that ended) can be written too.
"""

from brain.knowledge.keys import typed_id
from worker.model.changes import (
    Change,
    Document,
    DocumentChanged,
    Origin,
    Outcome,
    Passed,
    Position,
    Reading,
    SourceArrived,
    SourceGone,
    StreamEvent,
    StreamItem,
    Token,
)
from worker.model.keys import DocKey, id_text
from worker.model.leadership import Checkpoint, Gap, Leadership, Request, Reservation, Scan
from worker.model.publication import ChunkDraft, Delta, Part, Publication, Shaped
from worker.model.stored import AuditedChunk, DeadLetter, DocState, LedgerRow, StoredChunk, Stray

__all__ = [
    "AuditedChunk",
    "Change",
    "Checkpoint",
    "ChunkDraft",
    "DeadLetter",
    "Delta",
    "DocKey",
    "DocState",
    "Document",
    "DocumentChanged",
    "Gap",
    "Leadership",
    "LedgerRow",
    "Origin",
    "Outcome",
    "Part",
    "Passed",
    "Position",
    "Publication",
    "Reading",
    "Request",
    "Reservation",
    "Scan",
    "Shaped",
    "SourceArrived",
    "SourceGone",
    "StoredChunk",
    "Stray",
    "StreamEvent",
    "StreamItem",
    "Token",
    "id_text",
    "typed_id",
]
