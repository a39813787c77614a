"""The oracle: what must be stored, computed from the documents alone, and how the stored state differs from it."""

from collections.abc import Iterator, Mapping
from datetime import datetime

import numpy as np

from brain.knowledge.chunk import chunk_id, content_hash, text_hash
from brain.knowledge.pin import Pin
from tests.support.sim_database import Database
from tests.support.sim_source import POISON, SimSource, expected, model_of, target_of, vector_of
from worker.model import Checkpoint, DocKey, Part, Shaped
from worker.pipeline.scan_shape import covers, fingerprint

Sources = Mapping[str, SimSource]


def differences(db: Database, sources: Sources, now: datetime) -> list[str]:
    """Everything that keeps the stored state from being f(documents); empty when they agree exactly."""
    found = [f"scan of {name} is not done" for name in sources if name not in db.scans or not db.scans[name].done]
    found += [f"{row.key} owes {row.stale_since}" for row in db.ledger.values() if row.stale_since is not None]
    keys = {
        *db.ledger,
        *(key for chunks in db.stored.values() for key in chunks),
        *db.letters,
        *(key for source in db.documents.values() for key in source),
    }
    for key in sorted(keys, key=str):
        for pin in db.generations.live:
            found += _of_document(db, key, pin, sources[key.source], now)
    strangers = [pin for pin, chunks in db.stored.items() if any(chunks.values()) and pin not in db.generations.live]
    return found + [f"{pin.collection} is there and should not" for pin in strangers]


def _of_document(db: Database, key: DocKey, pin: Pin, source: SimSource, now: datetime) -> Iterator[str]:
    shaped = expected(db.documents[key.source], key, source, now)
    if not isinstance(shaped, Shaped) or any(POISON in part.text for part in shaped.parts):
        if key not in db.letters:
            yield f"{key} can never work and has no letter"
        return
    if key in db.letters:
        if db.documents[key.source].get(key, {}).get("ends") is None:  # nothing tells of the end of a dead letter
            yield f"{key} works and has a letter"
        return
    row = db.ledger.get(key)
    if (row is not None and not row.deleted) != bool(shaped.parts):
        yield f"{key}: the ledger says {row}, the document has {len(shaped.parts)} parts"
    chunks = db.of(pin).get(key, {})
    stored = {id_: row.stored.content_hash for id_, row in chunks.items()}
    wanted = {chunk_id(str(key), part.name): _content(part, source) for part in shaped.parts}
    if stored != wanted:
        texts = {id_: row.draft.text for id_, row in chunks.items()}
        yield f"{key} in {pin.collection}: stored {texts}, wanted {[part.text for part in shaped.parts]}"
    for id_, chunk in chunks.items():
        if (chunk.stored.model, chunk.stored.dimensions) != (pin.model, pin.dimensions):
            yield f"{id_} is of another model"
        if chunk.stored.text_hash != text_hash(chunk.draft.text) or not np.array_equal(
            chunk.vector, vector_of(chunk.draft.text, model_of(pin))
        ):
            yield f"{id_} has the vector of another text"


def _content(part: Part, source: SimSource) -> str:
    return content_hash(part.text, part.metadata.as_fields(), source.chunker_version)


def dishonest(db: Database, sources: Sources, checkpoint: Checkpoint, now: datetime) -> list[str]:
    """Documents whose newest event lies before the stored position, and which are not stored as they are now.

    What names neighbours and what leaves by time have no event of their own and are judged at the end.
    """
    place = db.place(checkpoint.position)
    found: list[str] = []
    for name, source in sources.items():
        scan = db.scans.get(name)
        if scan is None or not scan.done or db.latest.get(name, -1) >= place:
            continue
        for pin in db.generations.live:
            if not covers(scan, fingerprint(source.chunker_version, target_of(pin, sources))):
                continue  # it is being built
            for key in {*db.documents[name], *db.of(pin)}:
                if key.source == name and db.latest.get(key, -1) < place:
                    found += _own_words(db, key, pin, source, now)
    return found


def _own_words(db: Database, key: DocKey, pin: Pin, source: SimSource, now: datetime) -> Iterator[str]:
    document = db.documents[key.source].get(key)
    if document is not None and document.get("ends") is not None:
        return
    shaped = expected(db.documents[key.source], key, source, now)
    if not isinstance(shaped, Shaped) or any(POISON in part.text for part in shaped.parts):
        if key not in db.letters:
            yield f"{key} is behind the checkpoint, can never work and has no letter"
        return
    stored = {row.draft.text for id_, row in db.of(pin).get(key, {}).items() if not id_.endswith("/links")}
    wanted = {part.text for part in shaped.parts if part.name != "links"}
    if stored != wanted:
        yield f"{key} is behind the checkpoint in {pin.collection}: stored {stored}, says {wanted}"
