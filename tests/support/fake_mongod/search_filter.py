"""The filter of `$vectorSearch`: its operators, the types it compares, and the paths that must be declared.

Source: mongodb/docs, "$vectorSearch" (filter) and mongot's validation.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

from bson import ObjectId

from tests.support.fake_mongod.aggregate import Refusal, order
from tests.support.fake_mongod.store import at_path

Row = dict[str, Any]

MONGOT: Final = 8
"""The code of whatever mongot refuses, as it comes through mongod."""

_FILTER_TYPES: Final = (bool, int, float, str, datetime, ObjectId, UUID)

Passes = Callable[[Mapping[str, Any]], bool]


def question(query: Mapping[str, Any], declared: Collection[str]) -> Passes:
    """The filter as a question to a document; everything about it is checked before any document is looked at."""
    parts: list[Passes] = []
    for name, wanted in query.items():
        if name in {"$and", "$or", "$nor"}:
            inner = [question(part, declared) for part in wanted]
            parts.append(_joined(name, inner))
        elif name.startswith("$"):
            raise Refusal(MONGOT, f'"{name}" is not supported in a filter')
        else:
            operators: Row = dict(cast("Row", wanted)) if isinstance(wanted, Mapping) else {"$eq": wanted}
            parts += [_condition(name, word, argument, declared) for word, argument in operators.items()]
    return lambda row: all(part(row) for part in parts)


def _joined(name: str, inner: Sequence[Passes]) -> Passes:
    if name == "$and":
        return lambda row: all(part(row) for part in inner)
    return lambda row: any(part(row) for part in inner) is (name == "$or")


def _condition(path: str, word: str, argument: Any, declared: Collection[str]) -> Passes:  # noqa: ANN401 - a filter's value
    if word == "$not":
        inner = [_condition(path, name, value, declared) for name, value in argument.items()]
        return lambda row: not all(part(row) for part in inner)
    if word not in _OPERATORS:
        raise Refusal(MONGOT, f'"{word}" is not supported in a filter')
    several = cast("list[object]", argument) if isinstance(argument, list) else [argument]
    for one in several:
        if one is not None and not isinstance(one, _FILTER_TYPES):
            raise Refusal(MONGOT, f'"{path}" is compared with a type that is not supported in a filter')
    if argument is not None and path not in declared:
        raise Refusal(MONGOT, f"Path '{path}' needs to be indexed as filter")
    return lambda row: _OPERATORS[word](*at_path(row, path), argument)


def _any(compare: Callable[[Any, Any], bool]) -> Callable[[bool, Any, Any], bool]:
    """Whether the value, or an element of a list, is of the argument's type and compares so."""

    def holds(_present: bool, value: Any, argument: Any) -> bool:  # noqa: ANN401, FBT001 - a document's value
        several = cast("list[Any]", value) if isinstance(value, list) else [value]
        mine = order(argument)
        return any(order(one)[0] == mine[0] and compare(order(one), mine) for one in several)

    return holds


_EQUAL: Final = _any(lambda one, other: one == other)
_OPERATORS: Final[Mapping[str, Callable[[bool, Any, Any], bool]]] = {
    "$eq": _EQUAL,
    "$ne": lambda present, value, wanted: not _EQUAL(present, value, wanted),
    "$gt": _any(lambda one, other: one > other),
    "$gte": _any(lambda one, other: one >= other),
    "$lt": _any(lambda one, other: one < other),
    "$lte": _any(lambda one, other: one <= other),
    "$in": lambda present, value, wanted: any(_EQUAL(present, value, one) for one in wanted),
    "$nin": lambda present, value, wanted: not any(_EQUAL(present, value, one) for one in wanted),
    "$exists": lambda present, _value, wanted: present is bool(wanted),
}
