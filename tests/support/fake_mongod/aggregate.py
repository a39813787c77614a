"""Aggregations: the stages and expressions that the adapters send, with MongoDB's order of types and values."""

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from bson import ObjectId
from bson.binary import Binary

from tests.support.fake_mongod.store import matches, projected

Row = dict[str, Any]


class Refusal(Exception):
    """The command is not done; `code` and `text` are what a server says."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    def reply(self) -> Row:
        """The answer."""
        return {"ok": 0.0, "code": self.code, "codeName": f"Code{self.code}", "errmsg": str(self)}


@dataclass(frozen=True, slots=True)
class Item:
    """A document in a pipeline, and what stages know of it beside its fields (`$meta`)."""

    row: Mapping[str, Any]
    meta: Mapping[str, Any]


def run(stages: Sequence[Mapping[str, Any]], items: Sequence[Item]) -> list[Row]:
    """The documents that these stages make of those."""
    for stage in stages:
        ((name, body),) = stage.items()
        if name not in _STAGES:
            raise Refusal(40324, f"Unrecognized pipeline stage name: '{name}'")
        items = _STAGES[name](items, body)
    return [dict(item.row) for item in items]


def _match(items: Sequence[Item], query: Mapping[str, Any]) -> Sequence[Item]:
    return [item for item in items if matches(item.row, query)]


def _add(items: Sequence[Item], fields: Mapping[str, Any]) -> Sequence[Item]:
    made = [{name: value(item, expression) for name, expression in fields.items()} for item in items]
    return [Item({**item.row, **new}, item.meta) for item, new in zip(items, made, strict=True)]


def _project(items: Sequence[Item], fields: Mapping[str, Any]) -> Sequence[Item]:
    return [Item(projected(item.row, fields), item.meta) for item in items]


def _group(items: Sequence[Item], spec: Mapping[str, Any]) -> Sequence[Item]:
    """Counting only: every accumulator is `{$sum: 1}`."""
    counted = {name: body for name, body in spec.items() if name != "_id"}
    if any(body != {"$sum": 1} for body in counted.values()):
        raise NotImplementedError(counted)
    counts = Counter(value(item, spec["_id"]) for item in items)
    return [Item({"_id": key, **dict.fromkeys(counted, count)}, {}) for key, count in counts.items()]


def _limit(items: Sequence[Item], count: int) -> Sequence[Item]:
    return items[:count]


_STAGES: Final[Mapping[str, Callable[[Sequence[Item], Any], Sequence[Item]]]] = {
    "$match": _match,
    "$addFields": _add,
    "$project": _project,
    "$group": _group,
    "$limit": _limit,
}


def value(item: Item, expression: Any) -> Any:  # noqa: ANN401 - an expression's value
    """What an expression says of a document; `$$this` is not known but inside `$filter`."""
    if isinstance(expression, str) and expression.startswith("$"):
        return item.row.get(expression.lstrip("$"))
    if not isinstance(expression, Mapping):
        return expression
    ((name, body),) = cast("Row", expression).items()
    if name in _FORMS:
        return _FORMS[name](item, body)
    if name not in _OPERATORS:
        raise Refusal(168, f"Unrecognized expression '{name}'")
    arguments = cast("list[Any]", body) if isinstance(body, list) else [body]
    return _OPERATORS[name](*(value(item, argument) for argument in arguments))


def _meta(item: Item, name: str) -> object:
    if name not in item.meta:
        raise Refusal(40218, f"query requires {name} metadata, but it is not available")
    return item.meta[name]


def _switch(item: Item, body: Mapping[str, Any]) -> object:
    then = (branch["then"] for branch in body["branches"] if value(item, branch["case"]))
    return value(item, next(then, body["default"]))


def _cond(item: Item, body: Sequence[object]) -> object:
    return value(item, body[1] if value(item, body[0]) else body[2])


def _filter(item: Item, body: Mapping[str, Any]) -> object:
    return [one for one in value(item, body["input"]) if value(Item({"this": one}, {}), body["cond"])]


_FORMS: Final[Mapping[str, Callable[[Item, Any], Any]]] = {
    "$meta": _meta,
    "$switch": _switch,
    "$cond": _cond,
    "$filter": _filter,
    "$and": lambda item, body: all(value(item, part) for part in body),
}
"""Expressions that decide themselves what of theirs is evaluated."""


def order(one: Any) -> tuple[int, Any]:  # noqa: ANN401 - a document's value
    """A key that sorts values as BSON does: by type, binary data by length, subtype and bytes."""
    if isinstance(one, Binary):
        return 6, (len(one), one.subtype, bytes(one))
    ranks = ((type(None), 1), (bool, 8), (int | float, 2), (str, 3), (Mapping, 4), (list, 5), (bytes, 6), (ObjectId, 7))
    rank = next(rank for kind, rank in ranks if isinstance(one, kind))
    return rank, 0 if one is None else (len(one), 0, one) if rank == 6 else one


def _number(one: object) -> bool:
    return isinstance(one, int | float) and not isinstance(one, bool)


def _type(one: object) -> str:
    names = {1: "null", 2: "number", 3: "string", 4: "object", 5: "array", 6: "binData", 7: "objectId", 8: "bool"}
    return names[order(one)[0]]


def _compared(by: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda one, other: by(order(one), order(other))


def _most(values: Sequence[object]) -> object:
    return max(values, key=order, default=None)


def _least(values: Sequence[object]) -> object:
    return min(values, key=order, default=None)


def _if_null(one: object, other: object) -> object:
    return other if one is None else one


def _is_array(one: object) -> bool:
    return isinstance(one, list)


_OPERATORS: Final[Mapping[str, Callable[..., Any]]] = {
    "$eq": _compared(operator.eq),
    "$ne": _compared(operator.ne),
    "$gt": _compared(operator.gt),
    "$gte": _compared(operator.ge),
    "$lt": _compared(operator.lt),
    "$lte": _compared(operator.le),
    "$not": operator.not_,
    "$type": _type,
    "$isNumber": _number,
    "$isArray": _is_array,
    "$size": len,
    "$binarySize": len,
    "$max": _most,
    "$min": _least,
    "$ifNull": _if_null,
}
