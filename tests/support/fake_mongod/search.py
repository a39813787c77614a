"""Search indexes and `$vectorSearch` with Atlas' rules, as strict as Atlas is.

The rules are those of mongodb/docs (vector-search), of mongod's stage (first only, read concern local, a positive
limit) and of mongot's validation and scoring. What mongot refuses comes with code 8, as its errors do through mongod.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
from bson.binary import VECTOR_SUBTYPE, Binary, BinaryVectorDtype

from tests.support.fake_mongod.aggregate import Item, Refusal
from tests.support.fake_mongod.search_filter import MONGOT, question
from tests.support.fake_mongod.store import name_of

Row = dict[str, Any]

STAGES: Final = frozenset({"$vectorSearch", "$search", "$searchMeta", "$listSearchIndexes"})
_REQUIRED: Final = frozenset({"index", "path", "queryVector", "limit"})
_OPTIONAL: Final = frozenset(
    {"numCandidates", "exact", "filter", "explainOptions", "returnStoredSource", "searchNodePreference"}
)
_MOST_CANDIDATES: Final = 10_000


@dataclass(frozen=True, slots=True)
class State:
    """What `$listSearchIndexes` says of an index. One that cannot be queried answers with an error, or with nothing."""

    status: str = "READY"
    queryable: bool = True
    silent: bool = False
    definition: Mapping[str, Any] | None = None


READY: Final = State()
PENDING: Final = State("PENDING", queryable=False)
BUILDING: Final = State("BUILDING", queryable=False)
FAILED: Final = State("FAILED", queryable=False)


@dataclass(slots=True)
class Index:
    """One search index; each look at it moves it to the next of its states, the last one stays."""

    name: str
    kind: str
    definition: Mapping[str, Any]
    states: deque[State]
    lagging: Sequence[Row] | None = None
    """The documents as the index knows them, when it is behind the collection."""

    def listed(self, documents: int) -> Row:
        """Its row, and on to the next state."""
        state = self.states[0]
        row = {
            "id": "6630e0f0a0b0c0d0e0f01234",
            "name": self.name,
            "type": self.kind,
            "status": state.status,
            "queryable": state.queryable,
            "latestDefinition": self.definition if state.definition is None else state.definition,
        }
        if len(self.states) > 1:
            self.states.popleft()
        return row | ({"numDocs": documents} if state.queryable else {})

    def field(self, kind: str, path: str) -> Mapping[str, Any] | None:
        """The field of this type at that path."""
        rows = cast("Sequence[Mapping[str, Any]]", self.definition.get("fields", ()))
        return next((row for row in rows if row["type"] == kind and row["path"] == path), None)


@dataclass(slots=True)
class SearchIndexes:
    """Those of a server; `enabled` is whether it has search at all. `next_states` are the next built index's."""

    enabled: bool = False
    next_states: Sequence[State] = (READY,)
    indexes: dict[tuple[str, str], Index] = field(default_factory=dict[tuple[str, str], Index])

    def put(self, collection: str, name: str, definition: Mapping[str, Any], *states: State) -> Index:
        """An index that is there."""
        made = Index(name, "vectorSearch", definition, deque(states or (READY,)))
        self.indexes[collection, name] = made
        return made

    def create(self, collection: str, specs: Sequence[Mapping[str, Any]]) -> Row:
        """The command `createSearchIndexes`."""
        self._check()
        for spec in specs:
            if (collection, spec["name"]) in self.indexes:
                raise Refusal(68, f"Duplicate index {spec['name']}")
            made = self.put(collection, spec["name"], spec["definition"], *self.next_states)
            made.kind = spec.get("type", "search")
        return {"indexesCreated": [{"id": "6630e0f0a0b0c0d0e0f01234", "name": spec["name"]} for spec in specs]}

    def update(self, collection: str, name: str, definition: Mapping[str, Any]) -> Row:
        """The command `updateSearchIndex`."""
        self._check()
        if (collection, name) not in self.indexes:
            raise Refusal(27, f"index {name} not found")
        self.put(collection, name, definition, *self.next_states)
        return {}

    def listed(self, collection: str, asked: Mapping[str, Any], rows: Sequence[Row]) -> list[Row]:
        """The stage `$listSearchIndexes`."""
        self._check()
        if set(asked) - {"name", "id"}:
            raise Refusal(40415, f"BSON field '$listSearchIndexes.{next(iter(asked))}' is an unknown field.")
        found = [one for (where, _), one in self.indexes.items() if where == collection]
        return [
            one.listed(sum(_vector(row, _dimensions(one)) is not None for row in rows))
            for one in found
            if asked.get("name") in {None, one.name}
        ]

    def found(self, collection: str, stage: Mapping[str, Any], rows: Sequence[Row]) -> list[Item]:
        """The stage `$vectorSearch`: documents with their scores."""
        self._check()
        _check_mongod(stage)
        _check_stage(stage)
        index = self.indexes.get((collection, stage["index"]))
        if index is None or not rows:
            return []
        state = index.states[0]
        if not state.queryable:
            if state.silent:
                return []
            raise Refusal(MONGOT, f"cannot query vector index {index.name} while in state INITIAL_SYNC")
        query = _query(stage, index)
        if isinstance(stage["queryVector"], Binary) and not _is_float32(stage["queryVector"]):
            return []
        declared = {row["path"] for row in index.definition["fields"] if row["type"] == "filter"}
        passes = question(stage.get("filter") or {}, declared)
        scored = [
            (_score(vector, query), name_of(row["_id"]))
            for row in reversed(rows if index.lagging is None else index.lagging)
            # equal scores come in no order that a caller may rely on
            if (vector := _vector(row, query.size)) is not None and passes(row)
        ]
        scored.sort(key=lambda pair: -pair[0])
        current = {name_of(row["_id"]): row for row in rows}  # what is found is read from the collection
        best = scored[: stage["limit"]]
        return [Item(current[name], {"vectorSearchScore": score}) for score, name in best if name in current]

    def _check(self) -> None:
        if not self.enabled:
            text = (
                "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional"
            )
            raise Refusal(115, f"{text} configuration.")


def check_place(stages: Sequence[Mapping[str, Any]], read_concern: str | None) -> None:
    """Where a search stage may stand: first, and in no read concern but local."""
    for number, stage in enumerate(stages):
        name = next(iter(stage))
        if name in STAGES and number:
            raise Refusal(40602, f"{name} is only valid as the first stage in a pipeline")
        if name in STAGES and read_concern not in {None, "local"}:
            raise Refusal(72, f"Aggregation stage {name} cannot run with a readConcern other than 'local'")


def _check_mongod(stage: Mapping[str, Any]) -> None:
    limit = stage.get("limit")
    if limit is not None and not isinstance(limit, int | float):
        raise Refusal(8575100, "Expected limit field to be a number in $vectorSearch")
    if limit is not None and limit <= 0:
        raise Refusal(7912700, "Expected limit to be positive")


def _check_stage(stage: Mapping[str, Any]) -> None:
    for name in sorted(_REQUIRED - stage.keys()):
        raise Refusal(MONGOT, f'"{name}" is required')
    for name in sorted(stage.keys() - _REQUIRED - _OPTIONAL):
        raise Refusal(MONGOT, f'unrecognized field "{name}"')
    candidates, exact = stage.get("numCandidates"), stage.get("exact", False)
    if exact and candidates is not None:
        raise Refusal(MONGOT, '"numCandidates" must be omitted for exact search')
    if not exact and candidates is None:
        raise Refusal(MONGOT, '"numCandidates" is required')
    if candidates is not None and not 1 <= candidates <= _MOST_CANDIDATES:
        raise Refusal(MONGOT, f'"numCandidates" must be within bounds [1, {_MOST_CANDIDATES}]')
    if candidates is not None and candidates < stage["limit"]:
        raise Refusal(MONGOT, '"numCandidates" must be greater than or equal to limit')


def _dimensions(index: Index) -> int:
    rows = cast("Sequence[Mapping[str, Any]]", index.definition.get("fields", ()))
    return next((int(row["numDimensions"]) for row in rows if row["type"] == "vector"), 0)


def _query(stage: Mapping[str, Any], index: Index) -> np.ndarray[Any, Any]:
    vector = index.field("vector", stage["path"])
    if vector is None:
        raise Refusal(MONGOT, f"{stage['path']} is not indexed as vector")
    numbers = _numbers(stage["queryVector"])
    if len(numbers) != vector["numDimensions"]:
        raise Refusal(
            MONGOT, f"vector field is indexed with {vector['numDimensions']} dimensions but queried with {len(numbers)}"
        )
    for place, number in enumerate(numbers):
        if not math.isfinite(number):
            raise Refusal(MONGOT, f"queryVector has a non-finite value at position {place}")
    if vector["similarity"] == "cosine" and not any(numbers):
        raise Refusal(MONGOT, "zero vector cannot be searched with cosine similarity")
    return np.array(numbers, np.float64)


def _numbers(value: object) -> list[float]:
    if isinstance(value, Binary) and value.subtype == VECTOR_SUBTYPE:
        return [float(number) for number in value.as_vector().data]
    if isinstance(value, list):
        return [float(number) for number in cast("list[Any]", value)]
    raise Refusal(MONGOT, "queryVector must be numbers or a binary vector")


def _is_float32(value: Binary) -> bool:
    return value.subtype == VECTOR_SUBTYPE and value[:1] == BinaryVectorDtype.FLOAT32.value


def _vector(row: Mapping[str, Any], dimensions: int) -> np.ndarray[Any, Any] | None:
    """The stored vector, None for a document that the index has silently skipped."""
    value: object = row.get("embedding")
    if isinstance(value, Binary):
        if not _is_float32(value):
            return None
        numbers = np.array(value.as_vector().data, np.float64)
    elif isinstance(value, list) and all(isinstance(one, int | float) for one in cast("list[object]", value)):
        numbers = np.array(value, np.float64)
    else:
        return None
    return numbers if numbers.size == dimensions and np.isfinite(numbers).all() and numbers.any() else None


def _score(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    cosine = float(one @ other) / (float(np.linalg.norm(one)) * float(np.linalg.norm(other)))
    return float(np.float32((1 + cosine) / 2))
