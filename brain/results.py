"""From a tool's result to JSON text: the one boundary where the database's values become the model's.

Every result is valid JSON in ASCII and at most as long as its tool says. What was left out for that is said in the
text itself (`truncated`), so that a model neither takes a part for the whole nor reads half an object.
"""

import base64
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Final, cast
from uuid import UUID

from bson import DBRef, Decimal128, ObjectId, Timestamp
from pydantic import BaseModel

from brain.guard import LABEL, visible

MOST_ITEMS: Final = 1_000  # of one list; more is cut before it is turned into text
MOST_KEYS: Final = 1_000  # of one object; a result has a few dozen
MOST_DEPTH: Final = 16
SHORTEST_CUT: Final = 40
"""Characters that a cut text keeps."""

EXACT_INTEGERS: Final = 2**53
_LONGEST_WORD: Final = 300  # characters of a text without blanks that is never cut: an address or an id
_TIMES: Final = 8  # how many times its final size a result may have before it is shortened
_MARK: Final = 300  # bytes kept free for the envelope and the mark itself

Plain = dict[str, Any]


class TooLarge(Exception):
    """The result does not fit, whatever is left out."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A result as JSON text, and the same as values."""

    text: str
    data: Plain


@dataclass(slots=True)
class _Room:
    """How many characters may still be taken over, and what was left out so far."""

    characters: int
    longest: int
    items: Counter[str] = field(default_factory=Counter[str])
    texts: int = 0

    def told(self) -> str | None:
        """What was left out, as a sentence for the model."""
        parts = [f"{count} of {name}" for name, count in self.items.most_common(3)]
        parts += [f"the ends of {self.texts} texts"] if self.texts else []
        return f"left out for length: {', '.join(parts)}; ask for less at a time to see it" if parts else None


def encoded(result: BaseModel, most_bytes: int) -> Encoded:
    """`{"ok": true, "label": …, "data": …}`, with `truncated` when something was left out. Raises TooLarge."""
    room = _Room(most_bytes * _TIMES, most_bytes)
    data = cast("Plain", _plain(result.model_dump(by_alias=True, exclude_none=True), "the result", room, MOST_DEPTH))
    _fit(data, most_bytes - _MARK, room)
    truncated = room.told()
    envelope = {"ok": True, "label": LABEL, "data": data}
    return Encoded(_json(envelope | ({"truncated": truncated} if truncated else {})), data)


def refusal(code: str, message: str, *, retryable: bool) -> str:
    """`{"ok": false, "error": …}`."""
    return _json({"ok": False, "error": {"code": code, "message": visible(message), "retryable": retryable}})


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _plain(value: object, name: str, room: _Room, depth: int) -> object:
    """The value in JSON's own types; raises TooLarge, and TypeError for a type that no document has."""
    match value:
        case str():
            return _text(value, room)
        case Mapping():
            return _object(cast("Mapping[Any, object]", value), room, depth)
        case list() | tuple() | set() | frozenset():
            return _list(cast("list[object]", value), name, room, depth)
        case _:
            return _scalar(value)


def _text(text: str, room: _Room) -> str:
    most = max(SHORTEST_CUT, min(room.longest, room.characters))
    room.characters -= min(len(text), most)
    if len(text) <= most:
        return visible(text)
    room.texts += 1
    return f"{visible(text[:most])}…"


def _object(value: Mapping[Any, object], room: _Room, depth: int) -> Plain:
    """Without the values that are nothing (null, not finite): absent is absent."""
    if len(value) > MOST_KEYS or not depth:
        raise TooLarge
    children = ((visible(str(key)), child) for key, child in value.items())
    plain = ((key, _plain(child, key, room, depth - 1)) for key, child in children)
    return {key: child for key, child in plain if child is not None}


def _list(value: Iterable[object], name: str, room: _Room, depth: int) -> list[object]:
    if not depth:
        raise TooLarge
    items = sorted(value, key=repr) if isinstance(value, set | frozenset) else list(value)
    found: list[object] = []
    for item in islice(items, MOST_ITEMS):
        if room.characters <= 0:
            break
        room.characters -= 1
        found.append(_plain(item, name, room, depth - 1))
    if len(found) < len(items):
        room.items[name] += len(items) - len(found)
    return found


def _scalar(value: object) -> object:
    """One of the database's values. Ids become text, dates ISO 8601 in UTC, what is not finite nothing."""
    match value:
        case None | bool():
            return value
        case int() | float() | Decimal() | Decimal128():
            return _number(value.to_decimal() if isinstance(value, Decimal128) else value)
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)  # the driver's naive dates are in UTC
            return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case _:
            return _named(value)


def _named(value: object) -> object:
    """What names or numbers something: ids and references as text, a timestamp as the bridge writes it."""
    match value:
        case ObjectId() | UUID():
            return str(value)
        case DBRef():
            return str(value.id)
        case Timestamp():
            return {"t": value.time, "i": value.inc}
        case _:
            message = f"a result holds a {type(value).__name__}, which has no form in JSON"
            raise TypeError(message)


def _number(value: float | Decimal) -> int | float | str | None:
    """A JSON number; nothing when it is not finite, text for an integer that JSON readers would round."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        is_whole = abs(value) <= EXACT_INTEGERS and value == value.to_integral_value()
        value = int(value) if is_whole else float(value)
    if isinstance(value, int):
        return int(value) if abs(value) <= EXACT_INTEGERS else str(int(value))
    return value if math.isfinite(value) else None


def _fit(data: Plain, most: int, room: _Room) -> None:
    """Shorten until the JSON text has at most that many bytes: first the longest lists, from their ends; then texts."""
    while (over := len(_json(data)) - most) > 0 and _drop_items(data, over, room):
        pass
    longest = room.longest
    while len(_json(data)) > most:
        longest //= 2
        if longest < SHORTEST_CUT:
            raise TooLarge
        room.texts += _cut_texts(data, longest)


def _drop_items(data: Plain, over: int, room: _Room) -> bool:
    """Take enough from the end of the longest list, down to one item; False when no list has more than one."""
    lists = [(name, items) for name, items in _lists(data, "the result") if len(items) > 1]
    if not lists:
        return False
    name, items = max(lists, key=lambda pair: len(_json(pair[1])))
    freed = 0
    while len(items) > 1 and freed < over:
        freed += len(_json(items.pop())) + 1
        room.items[name] += 1
    return True


def _lists(value: object, name: str) -> Iterator[tuple[str, list[object]]]:
    """Every list in a plain value, with the key that it stands under."""
    if isinstance(value, dict):
        for key, child in cast("Plain", value).items():
            yield from _lists(child, key)
    elif isinstance(value, list):
        items = cast("list[object]", value)
        yield name, items
        for item in items:
            yield from _lists(item, name)


def _cut_texts(value: object, longest: int) -> int:
    """Cut every text that is longer, in place, but addresses and ids; how many."""
    pairs: Iterable[tuple[Any, object]] = ()
    if isinstance(value, dict):
        pairs = cast("Plain", value).items()
    elif isinstance(value, list):
        pairs = enumerate(cast("list[object]", value))
    cut = 0
    for key, child in list(pairs):
        if isinstance(child, str) and len(child) > longest and not _is_word(child):
            cast("Any", value)[key] = f"{child[:longest].rstrip('…')}…"
            cut += 0 if child.endswith("…") else 1
        elif isinstance(child, dict | list):
            cut += _cut_texts(cast("object", child), longest)
    return cut


def _is_word(text: str) -> bool:
    return len(text) <= _LONGEST_WORD and not any(map(str.isspace, text))
