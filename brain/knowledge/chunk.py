"""A chunk: the piece of text that is embedded, stored and found.

Ids come from source, document id and part name, never from the text, so that editing a text rewrites its chunk in
place. Two hashes answer two questions: `text_hash`, must it be embedded again? `content_hash`, must the row be written
again?
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
"""An embedding: float32, one dimension, of unit length or not."""

DocType = Literal["trick", "doc", "coaching", "film", "spot", "event", "rider"]
DOC_TYPES: Final[tuple[DocType, ...]] = ("trick", "doc", "coaching", "film", "spot", "event", "rider")


def text_hash(text: str) -> str:
    """The SHA-256 of a text, in hex: equal texts have equal vectors under one model."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def content_hash(text: str, metadata: Mapping[str, object], chunker_version: int) -> str:
    """The SHA-256 over text, metadata (links included) and chunker version, in hex.

    The metadata must be of JSON's types; key order does not matter.
    """
    body = json.dumps([text, metadata, chunker_version], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(body.encode("ascii")).hexdigest()


def chunk_id(doc_key: str, part: str) -> str:
    """The `_id` of a chunk: `<collection>/<type-tagged document id>/<part name>`."""
    return f"{doc_key}/{part}"


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a chunk says beside its text; `extra` holds the fields of its kind (trickName, headingPath, topic …)."""

    doc_type: DocType
    title: str
    sport: str | None = None
    url: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def as_fields(self) -> dict[str, object]:
        """The metadata under its stored names."""
        return {"docType": self.doc_type, "title": self.title, "sport": self.sport, "url": self.url, **self.extra}
