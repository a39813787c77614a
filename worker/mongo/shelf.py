"""The shelf: vectors of texts that are not stored any more, kept a while in the ledger row of their document.

An editor who undoes, a spot that is hidden and shown again, a document that is deleted and saved anew: their texts were
embedded under this pin before and need not be paid for again (promise: thrifty).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bson.binary import Binary
from pymongo import UpdateOne

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row
from brain.knowledge.pin import Pin
from worker.model import Delta
from worker.mongo.driver import Database, Write
from worker.mongo.names import LEDGER
from worker.mongo.rows import vector_of
from worker.mongo.transactions import Session

ROOM: Final = 16
"""Vectors kept of any document and generation, the latest: of a short one a few versions back."""

MOST_BYTES: Final = 4_000_000
"""Of a long document two versions are kept, up to so much in its row: 650 vectors of 1,536 numbers."""

READ: Final = 200
"""Ids of one read: the embedded server takes the square of their number (100 in 0.05 s, 2,000 in 10 s), and the chunks
of a document of 10 MB would never be found in time."""


async def standing(database: Database, pin: Pin, deltas: Sequence[Delta], session: Session) -> Sequence[Row]:
    """The stored rows that these deltas replace or remove, with their vectors; one read, but for long documents."""
    going = [id_ for delta in deltas for id_ in _going(delta)]
    fields = {"textHash": 1, "model": 1, "dimensions": 1, "embedding": 1}
    rows: list[Row] = []
    for start in range(0, len(going), READ):
        query = {"_id": {"$in": going[start : start + READ]}}
        rows += await database.find(pin.collection, query, fields, session=session)
    return rows


def shelve(pin: Pin, deltas: Sequence[Delta], rows: Sequence[Row], generations: int = 1) -> Sequence[Write]:
    """The writes that put away what these deltas replace or remove, out of the rows that stand there.

    So many generations live, which share the shelf.
    """
    going = {id_: delta for delta in deltas for id_ in _going(delta)}
    away: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        digest, vector = row.get("textHash"), row.get("embedding")  # broken by hand, it may lack or hold anything
        ours = (row.get("model"), row.get("dimensions")) == (pin.model, pin.dimensions)
        if ours and isinstance(digest, str) and isinstance(vector, Binary):
            kept = {"textHash": digest, "model": pin.model, "embedding": vector}
            away.setdefault(str(going[row["_id"]].key), []).append(kept)
    rooms = {str(delta.key): _room(delta, pin, generations) for delta in deltas}
    return [
        UpdateOne({"_id": name}, {"$push": {"shelf": {"$each": vectors[-rooms[name] :], "$slice": -rooms[name]}}})
        for name, vectors in away.items()
    ]


def _room(delta: Delta, pin: Pin, generations: int) -> int:
    """How many vectors its row may keep: two versions of the document, before and after, in each generation."""
    chunks = max(delta.kept + len(delta.rewrite) + len(delta.write), len(_going(delta)))
    return min(max(ROOM, 2 * chunks) * generations, max(ROOM, MOST_BYTES // (4 * pin.dimensions)))


def _going(delta: Delta) -> Sequence[str]:
    return [*delta.remove, *(draft.id for draft in delta.write)]


async def shelved(database: Database, pin: Pin, text_hashes: Sequence[str]) -> Mapping[str, Vector]:
    """The vectors that are put away for these texts, by the pinned model."""
    wanted = set(text_hashes)
    query = {"shelf.textHash": {"$in": list(wanted)}}
    found: dict[str, Vector] = {}
    for row in await database.find(LEDGER, query, {"shelf": 1}):
        for kept in row["shelf"]:
            vector = vector_of(kept["embedding"])
            if kept["textHash"] in wanted and kept["model"] == pin.model and vector is not None:
                found[kept["textHash"]] = vector
    return found
