"""The vector index of a pin, as values: how it is to be defined, and what the server says of it. No I/O.

Sources: mongodb/docs, "How to Index Fields for Vector Search" and `$listSearchIndexes` (statuses); the drivers' index
management specification (`queryable` decides, not `status`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from brain.knowledge.pin import Pin

VECTOR_FIELD: Final = "embedding"
FILTER_FIELDS: Final = ("sport", "docType")
SIMILARITY: Final = "cosine"

BROKEN: Final = frozenset({"FAILED", "STALE"})
"""Statuses that waiting does not mend: the build failed; or the index no longer follows the collection."""

UNDER_WAY: Final = frozenset({"PENDING", "BUILDING", "DELETING"})
"""Statuses that pass by themselves. While a new definition is built the old one answers: such an index is queryable."""


def definition(pin: Pin) -> dict[str, Any]:
    """The definition of a pin's index, as `createSearchIndexes` takes it for the type `vectorSearch`."""
    vector = {"type": "vector", "path": VECTOR_FIELD, "numDimensions": pin.dimensions, "similarity": SIMILARITY}
    return {"fields": [vector, *({"type": "filter", "path": path} for path in FILTER_FIELDS)]}


def differences(found: Mapping[str, Any], pin: Pin) -> tuple[str, ...]:
    """What of a definition is not as the pin needs it, a clause each; more fields, or a quantization, do no harm."""
    fields = found.get("fields")
    members = cast("Sequence[object]", fields) if isinstance(fields, list) else ()
    rows = [cast("Mapping[str, Any]", member) for member in members if isinstance(member, Mapping)]
    if not rows:
        return ("it is no index of the type vectorSearch",)
    told: list[str] = []
    vector = next((row for row in rows if row.get("type") == "vector" and row.get("path") == VECTOR_FIELD), None)
    if vector is None:
        told.append(f"{VECTOR_FIELD} is no vector field")
    else:
        if vector.get("numDimensions") != pin.dimensions:
            told.append(f"{VECTOR_FIELD} has {vector.get('numDimensions')} dimensions, the pin {pin.dimensions}")
        if vector.get("similarity") != SIMILARITY:
            told.append(f"its similarity is {vector.get('similarity')}, not {SIMILARITY}")
    filters = {row.get("path") for row in rows if row.get("type") == "filter"}
    return (*told, *(f"{path} is no filter field" for path in FILTER_FIELDS if path not in filters))


@dataclass(frozen=True, slots=True)
class Listed:
    """A row of `$listSearchIndexes`; `documents` is how many are in the index, where the server tells."""

    status: str
    queryable: bool
    definition: Mapping[str, Any]
    documents: int | None = None

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> "Listed | None":
        """Read the answer for one name: None when there is no such index."""
        if not rows or rows[0].get("status") == "DOES_NOT_EXIST":
            return None
        row = rows[0]
        latest, count = row.get("latestDefinition"), row.get("numDocs")
        return cls(
            status=str(row.get("status", "unknown")),
            queryable=row.get("queryable") is True,
            definition=cast("Mapping[str, Any]", latest) if isinstance(latest, Mapping) else {},
            documents=int(count) if isinstance(count, int | float) else None,
        )
