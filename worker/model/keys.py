"""Which document: its key, and the forms of its id."""

import uuid
from dataclasses import dataclass, field

from bson import ObjectId, json_util
from bson.binary import Binary

from brain.knowledge.keys import is_uuid, typed_id


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
