"""Documents by collection: enough of MongoDB's queries, updates and projections for the worker's adapters."""

import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import bson

Row = dict[str, Any]
Query = Mapping[str, Any]

_ORDER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def name_of(value: object) -> bytes:
    """An `_id` as something that can be compared with any other."""
    return bson.encode({"": value})


def at_path(row: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """Whether there is a value at a dotted path, and the value; through a list, the list of what is there."""
    name, _, rest = path.partition(".")
    if name not in row:
        return False, None
    value = row[name]
    if not rest:
        return True, value
    found = [at_path(cast("Row", one), rest) for one in _each(value) if isinstance(one, Mapping)]
    values = [inner for present, inner in found if present]
    if isinstance(value, list):
        return bool(values), values
    return (True, values[0]) if values else (False, None)


def matches(row: Mapping[str, Any], query: Query) -> bool:
    """Whether a document answers a query."""
    for name, wanted in query.items():
        if name == "$or":
            if not any(matches(row, part) for part in wanted):
                return False
        elif name == "$expr":
            there = at_path(row, wanted["$gt"][0].removeprefix("$"))[1]
            if not _ordered(operator.gt, there, wanted["$gt"][1]["$literal"]):
                return False
        elif not _field(*at_path(row, name), wanted):
            return False
    return True


def _field(present: bool, value: Any, wanted: Any) -> bool:  # noqa: ANN401, FBT001 - a document's value
    if not isinstance(wanted, Mapping) or not any(str(key).startswith("$") for key in cast("Row", wanted)):
        return any(one == wanted for one in _each(value))
    conditions = cast("Query", wanted)
    return all(_holds(present, value, name, argument) for name, argument in conditions.items())


def _holds(present: bool, value: Any, name: str, argument: Any) -> bool:  # noqa: ANN401, FBT001 - likewise
    if name == "$exists":
        return present == bool(argument)
    if name == "$in":
        return any(one == candidate for one in _each(value) for candidate in argument)
    if name == "$ne":
        return all(one != argument for one in _each(value))
    return present and any(_ordered(_ORDER[name], one, argument) for one in _each(value))


def _each(value: Any) -> list[Any]:  # noqa: ANN401 - likewise
    return [value, *cast("list[Any]", value)] if isinstance(value, list) else [value]


def _ordered(compare: Callable[[Any, Any], bool], left: object, right: object) -> bool:
    try:
        return compare(left, right)
    except TypeError:  # of different types: MongoDB orders them, this one says no
        return False


def projected(row: Mapping[str, Any], fields: Query | None) -> Row:
    """The fields that are asked for, or all but those that are not wanted; top level only, `_id` always."""
    if not fields or not any(fields.values()):
        return {name: value for name, value in row.items() if name not in (fields or ())}
    return {name: value for name, value in row.items() if name == "_id" or fields.get(name)}


class Store:
    """The documents."""

    def __init__(self) -> None:
        self.collections: dict[str, dict[bytes, Row]] = {}
        self.unique: dict[str, str] = {}
        """A field of a collection whose values somebody's index allows once."""

    def copy(self, collection: str) -> dict[bytes, Row]:
        """A copy of a collection to go back to; documents are never changed in place."""
        return dict(self.rows(collection))

    def rows(self, collection: str) -> dict[bytes, Row]:
        """The documents of a collection."""
        return self.collections.setdefault(collection, {})

    def find(self, collection: str, query: Query) -> list[Row]:
        """The documents that match."""
        return [row for row in self.rows(collection).values() if matches(row, query)]

    def insert(self, collection: str, row: Row) -> bool:
        """Whether there was room for it."""
        rows = self.rows(collection)
        field = self.unique.get(collection)
        if name_of(row["_id"]) in rows or (field and any(one[field] == row[field] for one in rows.values())):
            return False
        rows[name_of(row["_id"])] = dict(row)
        return True

    def delete(self, collection: str, query: Query, limit: int) -> int:
        """Delete what matches, at most `limit` (0: all); how many."""
        found = self.find(collection, query)
        found = found[:limit] if limit else found
        for row in found:
            del self.rows(collection)[name_of(row["_id"])]
        return len(found)

    def update(self, collection: str, change: Query) -> tuple[int, object]:
        """One statement of an update command: how many matched, and the `_id` that an upsert made or None."""
        query, update = change["q"], change["u"]
        found = self.find(collection, query)
        for row in found if change.get("multi") else found[:1]:
            self.rows(collection)[name_of(row["_id"])] = _changed(row, update)
        if found or not change.get("upsert"):
            return len(found) if change.get("multi") else len(found[:1]), None
        seed = {name: value for name, value in query.items() if not isinstance(value, Mapping)}
        made = _changed(seed, update)
        return (1, made["_id"]) if self.insert(collection, made) else (0, DUPLICATE)


DUPLICATE: Final = object()
"""Instead of an `_id`: the upsert met a document that its query does not match."""


def _changed(row: Row, update: Query) -> Row:
    if not any(name.startswith("$") for name in update):
        return {"_id": row["_id"], **update}
    new = dict(row)
    for operation, fields in update.items():
        for name, value in cast("Query", fields).items():
            _apply(new, operation, name, value)
    return new


def _apply(row: Row, operation: str, name: str, value: Any) -> None:  # noqa: ANN401 - a document's value
    if operation == "$set":
        row[name] = value
    elif operation == "$unset":
        row.pop(name, None)
    elif operation == "$inc":
        row[name] = row.get(name, 0) + value
    elif operation == "$max":
        row[name] = max(row[name], value) if name in row else value
    elif operation == "$currentDate":
        row[name] = datetime.now(UTC)
    elif operation == "$push":
        row[name] = [*row.get(name, ()), *value["$each"]][value["$slice"] :]
    else:
        raise NotImplementedError(operation)


def ordered(rows: Iterable[Row], sort: Mapping[str, int]) -> list[Row]:
    """The documents in an order; values of different types by their types' names."""
    found = list(rows)
    for name, direction in reversed(list(sort.items())):
        found.sort(key=lambda row: (type(row.get(name)).__name__, row.get(name)), reverse=direction < 0)
    return found
