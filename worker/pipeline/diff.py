"""Diff: what must be written so that the stored state of a document becomes what it says now.

Compared are hashes, never events: noise writes nothing, a change of metadata keeps its vector, and only a text that is
new under the pinned model is embedded. The rows that are stored decide, not the ledger's memory of them, so a chunk
that somebody removed by hand comes back. A version later than the read is written over too: either a newer look was
there first, and the store says so, or nobody ever read that version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bson import Timestamp

from brain.knowledge.chunk import chunk_id, content_hash, text_hash
from brain.knowledge.pin import Pin
from brain.knowledge.tokens import TokenCounter
from worker.errors import Poison
from worker.model import ChunkDraft, Delta, DocKey, DocState, LedgerRow, Part, Shaped, StoredChunk


@dataclass(frozen=True, slots=True)
class Target:
    """What chunks are made for, one generation: its model, its tokenizer, and each source's chunker version."""

    pin: Pin
    tokens: TokenCounter
    chunker_versions: Mapping[str, int]


def diff(key: DocKey, version: Timestamp, shaped: Shaped, state: DocState, target: Target) -> Delta:
    """The delta from the stored state of the document to what it says at `version`."""
    chunker_version = target.chunker_versions[key.source]
    stored = {chunk.id: chunk for chunk in state.chunks}
    write: list[ChunkDraft] = []
    rewrite: list[ChunkDraft] = []
    wanted: set[str] = set()
    for part in shaped.parts:
        hashes = text_hash(part.text), content_hash(part.text, part.metadata.as_fields(), chunker_version)
        row = chunk_id(str(key), part.name)
        wanted.add(row)
        old = stored.get(row)
        if not _same_vector(hashes[0], old, target.pin):
            write.append(_draft(row, part, hashes, target.tokens))
        elif old is None or old.content_hash != hashes[1] or old.version > version:
            rewrite.append(_draft(row, part, hashes, target.tokens))
    remove = tuple(sorted(stored.keys() - wanted))
    ledger = _ledger(key, version, shaped)
    touched = bool(write or rewrite or remove)
    return Delta(
        key=key,
        version=version,
        write=tuple(write),
        rewrite=tuple(rewrite),
        remove=remove,
        kept=len(wanted) - len(write) - len(rewrite),
        ledger=ledger if touched or _ledger_moved(ledger, state.ledger) else None,
        refresh_neighbours=ledger.face != _face(state.ledger) or bool(state.seen_as - {ledger.face}),
        clears_dead_letter=state.dead is not None,
    )


def diff_beside(
    delta: Delta, shaped: Mapping[Pin, Shaped | Poison], state: DocState, targets: Sequence[Target]
) -> Delta:
    """The delta with the same for every other generation; whichever of them is written, the ledger has one row for all.

    A document that cannot be in another generation still is in its own: why it cannot stands in its place.
    """
    others: dict[Pin, Delta | Poison] = {}
    ledger = delta.ledger
    for target in targets:
        says = shaped[target.pin]
        if isinstance(says, Poison):
            others[target.pin] = says
            continue
        there = replace(state, chunks=state.beside.get(target.pin, ()))
        other = diff(delta.key, delta.version, says, there, target)
        ledger = ledger or other.ledger
        others[target.pin] = replace(other, ledger=None, refresh_neighbours=False, clears_dead_letter=False)
    return replace(delta, ledger=ledger, beside=others) if others else delta


def _draft(row: str, part: Part, hashes: tuple[str, str], tokens: TokenCounter) -> ChunkDraft:
    return ChunkDraft(
        id=row,
        text=part.text,
        metadata=part.metadata,
        text_hash=hashes[0],
        content_hash=hashes[1],
        tokens=tokens.count(part.text),
    )


def _same_vector(text_digest: str, old: StoredChunk | None, pin: Pin) -> bool:
    return old is not None and (old.text_hash, old.model, old.dimensions) == (text_digest, pin.model, pin.dimensions)


def _ledger(key: DocKey, version: Timestamp, shaped: Shaped) -> LedgerRow:
    refs = tuple(ref for ref in dict.fromkeys(shaped.refs) if ref != key)
    return LedgerRow(
        key,
        version,
        deleted=not shaped.parts,
        face=shaped.face,
        refs=tuple(str(ref) for ref in refs),
        seen=tuple(shaped.faces.get(ref) for ref in refs),
        # An expired or hidden document is watched no longer by time: only a write can bring it back.
        expires_at=shaped.expires_at if shaped.parts else None,
    )


def _ledger_moved(new: LedgerRow, old: LedgerRow | None) -> bool:
    """Whether the row says something else than before; a newer version of the same says nothing new."""
    if old is None:
        return not new.deleted or new.face is not None or bool(new.refs)
    if old.stale_since is not None or old.version > new.version:
        return True
    return replace(new, version=old.version) != old


def _face(ledger: LedgerRow | None) -> str | None:
    return None if ledger is None else ledger.face
