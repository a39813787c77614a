"""Rows of our own collections to values and back: the only place that knows their field names."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import numpy as np
from bson import Timestamp
from bson.binary import VECTOR_SUBTYPE, Binary, BinaryVectorDtype

from brain.knowledge.chunk import Vector
from brain.knowledge.pin import Pin
from worker.model import ChunkDraft, DeadLetter, DocKey, LedgerRow, StoredChunk, id_text

_FLOAT32: Final = BinaryVectorDtype.FLOAT32.value + b"\x00"  # the element type, then the padding (BSON vectors)

_NEVER: Final = Timestamp(0xFFFF_FFFF, 0xFFFF_FFFF)

STORED_CHUNK: Final = {"docKey": 1, "textHash": 1, "contentHash": 1, "model": 1, "dimensions": 1, "sourceVersion": 1}
"""The projection that `stored_chunk` needs: neither text nor vector."""


def vector_value(vector: Vector) -> Binary:
    """A vector as BSON binary float32, a third of a list of doubles."""
    return Binary(_FLOAT32 + np.asarray(vector, dtype="<f4").tobytes(), VECTOR_SUBTYPE)


def vector_of(value: object) -> Vector | None:
    """The vector of a stored value, None when it is none."""
    if isinstance(value, Binary):
        if value.subtype == VECTOR_SUBTYPE and value.startswith(_FLOAT32) and len(value) % 4 == len(_FLOAT32):
            return np.frombuffer(value, dtype="<f4", offset=len(_FLOAT32))
        try:
            return np.asarray(value.as_vector().data, dtype=np.float32)
        except ValueError:
            return None
    if isinstance(value, list):
        try:
            return np.asarray(value, dtype=np.float32)
        except (TypeError, ValueError):
            return None
    return None


def chunk_fields(draft: ChunkDraft, key: DocKey, version: Timestamp, now: datetime) -> dict[str, Any]:
    """Every field of a chunk but its id, its vector and what the vector is of."""
    return {
        "source": key.source,
        "docId": id_text(key.raw),
        "docKey": str(key),
        **draft.metadata.as_fields(),
        "text": draft.text,
        "contentHash": draft.content_hash,
        "textHash": draft.text_hash,
        "tokens": draft.tokens,
        "sourceVersion": version,
        "indexedAt": now,
    }


def vector_fields(vector: Vector, pin: Pin) -> dict[str, Any]:
    """The vector of a chunk and what it is of."""
    return {"model": pin.model, "dimensions": pin.dimensions, "embedding": vector_value(vector)}


_OWN_FIELDS: Final = frozenset(
    (
        "_id",
        "source",
        "docId",
        "docKey",
        "text",
        "contentHash",
        "textHash",
        "tokens",
        "sourceVersion",
        "indexedAt",
        "model",
        "dimensions",
        "embedding",
    )
)
"""Every field of a chunk row that is no metadata."""


def metadata_of(row: Mapping[str, Any]) -> dict[str, object]:
    """Every field of a stored chunk that its content hash covers, beside the text."""
    return {name: value for name, value in row.items() if name not in _OWN_FIELDS}


def owner_of(row: Mapping[str, Any]) -> str | None:
    """The name of the document that a chunk row says it is of; None for a row that the pipeline cannot address.

    Anybody may write anything into the collection: an id that is no text, a list as owner.
    """
    owner = row.get("docKey")
    return owner if isinstance(owner, str) and isinstance(row["_id"], str) else None


def stored_chunk(row: Mapping[str, Any]) -> StoredChunk:
    """A chunk row as the diff sees it; fields that somebody broke by hand are seen as different from any right ones."""
    dimensions = row.get("dimensions")
    return StoredChunk(
        id=str(row["_id"]),
        text_hash=str(row.get("textHash")),
        content_hash=str(row.get("contentHash")),
        model=str(row.get("model")),
        dimensions=dimensions if isinstance(dimensions, int) else -1,
        version=version_of(row.get("sourceVersion")),
    )


def version_of(value: object) -> Timestamp:
    """A stored version; what is none is later than any read, and so is written over (`worker.pipeline.diff`)."""
    return value if isinstance(value, Timestamp) else _NEVER


def ledger_change(row: LedgerRow, epoch: int, now: datetime) -> dict[str, Any]:
    """The update that makes the ledger's row of a document; what is owed and what expires is there only when it is."""
    sometimes = {"staleSince": row.stale_since, "expiresAt": row.expires_at}
    there = {name: value for name, value in sometimes.items() if value is not None}
    gone = {name: "" for name, value in sometimes.items() if value is None}
    fields = {
        "source": row.key.source,
        "key": row.key.raw,
        "version": row.version,
        "epoch": epoch,
        "deleted": row.deleted,
        "face": row.face,
        "refs": list(row.refs),
        "seen": list(row.seen),
        "updatedAt": now,
        **there,
    }
    return {"$set": fields, **({"$unset": gone} if gone else {})}


def ledger_row(row: Mapping[str, Any]) -> LedgerRow:
    """A stored ledger row."""
    return LedgerRow(
        key=DocKey.of(str(row["source"]), row["key"]),
        version=version_of(row.get("version")),
        deleted=bool(row.get("deleted")),
        face=row.get("face"),
        refs=tuple(row.get("refs") or ()),
        seen=tuple(row.get("seen") or ()),
        expires_at=row.get("expiresAt"),
        stale_since=row.get("staleSince"),
    )


def letter_fields(letter: DeadLetter, epoch: int) -> dict[str, Any]:
    """A dead letter's row, without its id."""
    return {
        "source": letter.key.source,
        "key": letter.key.raw,
        "version": letter.version,
        "digest": letter.digest,
        "reason": letter.reason,
        "detail": letter.detail,
        "tries": letter.tries,
        "firstAt": letter.first_at,
        "lastAt": letter.last_at,
        "epoch": epoch,
    }


def dead_letter(row: Mapping[str, Any]) -> DeadLetter:
    """A stored dead letter."""
    return DeadLetter(
        key=DocKey.of(str(row["source"]), row["key"]),
        version=row["version"],
        digest=str(row.get("digest", "")),
        reason=str(row["reason"]),
        detail=str(row["detail"]),
        tries=int(row["tries"]),
        first_at=row["firstAt"],
        last_at=row["lastAt"],
    )
