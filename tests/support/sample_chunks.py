"""The sample's chunks as the worker would store them, embedded by the local model."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from bson import Timestamp

from brain.knowledge.chunk import chunk_id
from brain.knowledge.connect import Row
from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.pin import MINILM, Pin
from brain.knowledge.search.vectors import binary
from brain.knowledge.tokens import counter_for
from tests.support.tool_world import NOW, SAMPLE, sample_rows
from worker.docs_sync.tree import read_tree
from worker.model import DocKey, Document, Part
from worker.sample import DOCS_ALLOW
from worker.sources.registry import SOURCES
from worker.sources.source import Setting

PIN: Final = Pin(MINILM.name, MINILM.dimensions)
LIMIT: Final = 256  # tokens: the local model's window
_BATCH: Final = 32


async def sample_chunks(client: EmbeddingClient, indexed: datetime = NOW) -> list[Row]:
    """Every chunk of the sample with its vector: about three hundred, ten seconds."""
    rows = [_row(key, part, indexed) for key, part in _parts()]
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        embedded = await client.embed([row["text"] for row in batch])
        for row, vector in zip(batch, embedded.vectors, strict=True):
            row["embedding"] = binary(vector)
    return rows


def _parts() -> Iterator[tuple[DocKey, Part]]:
    documents = _documents()
    for name, source in SOURCES.items():
        known = {DocKey.of(name, document["_id"]): document for document in documents.get(name, ())}
        setting = Setting(NOW, counter_for(MINILM), LIMIT, known)
        for key, document in known.items():
            yield from ((key, part) for part in source.shape(document, setting).parts)


def _documents() -> Mapping[str, Sequence[Document]]:
    found: dict[str, Sequence[Document]] = dict(sample_rows())
    pages = read_tree(SAMPLE / "docs", DOCS_ALLOW, "docs", "/docs").pages
    return found | {"docs": [{"_id": page.id, **page.as_row(NOW)} for page in pages]}


def _row(key: DocKey, part: Part, indexed: datetime) -> dict[str, Any]:
    return {
        "_id": chunk_id(str(key), part.name),
        "source": key.source,
        "docId": str(key.raw),
        "docKey": str(key),
        **part.metadata.as_fields(),
        "text": part.text,
        "model": PIN.model,
        "dimensions": PIN.dimensions,
        "sourceVersion": Timestamp(int(indexed.timestamp()), 1),
        "indexedAt": indexed,
    }
