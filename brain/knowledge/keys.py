"""The keys of documents: `<collection>/<type-tagged id>`, the form that both halves share.

It is the `_id` of a document's ledger row, the `docKey` of its chunks, and the beginning of their ids.
"""

import hashlib
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import bson
from bson import Decimal128, ObjectId
from bson.binary import UUID_SUBTYPE, Binary

_UUID_BYTES: Final = 16
_LONGEST_ID: Final = 200  # characters; a longer id is named by its hash, so that ids stay printable


def typed_id(raw: object) -> str:
    """A document id as printable, type-tagged text: an ObjectId differs from its hex, 5 equals 5.0 as in MongoDB."""
    tagged: str | None = None
    match raw:
        case ObjectId():
            tagged = f"o:{raw}"
        case str():
            tagged = f"s:{raw}"
        case bool():
            tagged = f"b:{raw}".lower()
        case int():
            tagged = f"n:{int(raw)}"
        case float() if raw.is_integer():
            tagged = f"n:{int(raw)}"
        case Decimal128() if _is_integral(raw):
            tagged = f"n:{int(raw.to_decimal())}"
        case Binary() if is_uuid(raw):
            tagged = f"u:{uuid.UUID(bytes=bytes(raw))}"
        case _:
            pass
    if tagged is not None and len(tagged) <= _LONGEST_ID and tagged.isprintable():
        return tagged
    return f"h:{hashlib.sha256(bson.encode({'': raw})).hexdigest()}"


def _is_integral(raw: Decimal128) -> bool:
    value = raw.to_decimal()
    short = value.is_finite() and (value == 0 or value.adjusted() < _LONGEST_ID)
    return short and value == value.to_integral_value()


def document_key(source: str, raw: object) -> str:
    """The key of the document with this `_id` in that collection."""
    raw = Binary.from_uuid(raw) if isinstance(raw, uuid.UUID) else raw
    return f"{source}/{typed_id(raw)}"


def possible_keys(source: str, told: object) -> Sequence[str]:
    """The keys that an id may mean when it was told by a program that knows no BSON.

    A text may be the text of an ObjectId, a number or a UUID; any other value is the id itself.
    """
    meant: list[object] = [told]
    if isinstance(told, str):
        if ObjectId.is_valid(told):
            meant.append(ObjectId(told))
        if told.isascii() and told.isdecimal() and len(told) <= _LONGEST_ID:
            meant.append(int(told))
        with suppress(ValueError):
            meant.append(uuid.UUID(told))
    return [document_key(source, raw) for raw in meant]


def is_uuid(raw: Binary) -> bool:
    """Whether a binary is a UUID: it may say so and have another length."""
    return raw.subtype == UUID_SUBTYPE and len(raw) == _UUID_BYTES
