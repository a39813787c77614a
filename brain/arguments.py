"""From a model's words to the arguments of a tool: every odd input is answered with a sentence, none is run.

Models send empty text for tools without arguments, `null`, numbers, two objects one after the other, NaN; strangers
send operators, depth and megabytes through them. Size and depth are bounded before anything looks at the values, and no
message repeats a value.
"""

import difflib
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, NoReturn, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from brain.errors import ToolFailure
from brain.tool import Arguments

MOST_CHARACTERS: Final = 32_768
"""Of the JSON text, and of all texts in it together. No tool takes a text of more than a few thousand."""

MOST_DEPTH: Final = 8
MOST_VALUES: Final = 2_000
LARGEST_INTEGER: Final = 2**53
"""Beyond it JSON readers disagree on the value; the database's own limit is 2**63."""

_MANY_VALUES: Final = f"the arguments hold more than {MOST_VALUES} values"
_MOST_SENTENCES: Final = 5
_MOST_DETAILS: Final = 50  # mistakes that are looked at for them
_LONGEST_NAME: Final = 64  # characters of a name in a message
_GLIMPSE: Final = 8  # members of a container in a log
_GLIMPSE_DEPTH: Final = 3
_GLIMPSE_TEXT: Final = 200  # characters

A = TypeVar("A", bound=Arguments)


def understood(model: type[A], arguments: object) -> A:
    """The arguments of a call, from JSON text or from values that somebody has parsed already.

    Blank text is no arguments, and an optional argument that is null is one that was left out: strict schemas make
    models name every argument. Raises ToolFailure (`invalid_arguments`).
    """
    parsed = _parsed(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(parsed, Mapping):
        _refuse(f"the arguments must be one JSON object, and were {_kind(parsed)}")
    named = cast("Mapping[Any, object]", parsed)
    if len(named) > MOST_VALUES:  # before anything goes through them
        _refuse(_MANY_VALUES)
    given = {name: value for name, value in named.items() if value is not None}
    _check(given)
    try:
        return model.model_validate(given)
    except ValidationError as exc:
        failure = ToolFailure(code="invalid_arguments", message=_explained(exc, model))
    raise failure  # outside of the handler: a ValidationError that travels on as a context would carry the values


def canonical(arguments: Arguments) -> str:
    """The arguments as JSON text that is equal for equal arguments."""
    return json.dumps(arguments.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def digest(arguments: object) -> str:
    """What names arguments in a log without telling them: 12 hex digits, of what came when that was no good."""
    text = canonical(arguments) if isinstance(arguments, Arguments) else arguments
    if not isinstance(text, str):  # parsed elsewhere and refused here
        text = "\n".join(_pieces(text))
    return hashlib.sha256(text[:MOST_CHARACTERS].encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _pieces(value: object) -> Iterable[str]:
    """Values of any shape and size as texts, a container by its length before what it holds; bounded, any depth."""
    waiting, room = [value], MOST_CHARACTERS
    while waiting and room > 0:
        one = waiting.pop()
        kind = type(one).__name__
        waiting += islice(_children(one), MOST_VALUES)
        match one:
            case str():
                piece = one[:MOST_CHARACTERS]
            case Mapping() | list() | tuple():
                piece = str(len(cast("Sequence[object]", one)))
            case int():
                piece = f"{one:x}"  # in decimals an endless one would be refused
            case _:
                piece = repr(one) if isinstance(one, float | None) else ""
        yield f"{kind} {piece}"
        room -= len(kind) + len(piece)


def glimpse(value: object, depth: int = _GLIMPSE_DEPTH) -> str:
    """A value of any shape and size, for a log: the beginning of it, in a time that does not grow with it."""
    match value:
        case str():
            return repr(value[:_GLIMPSE_TEXT]) + ("…" if len(value) > _GLIMPSE_TEXT else "")
        case int() if abs(value) > LARGEST_INTEGER:
            return "(a big number)"
        case None | bool() | int() | float():
            return repr(value)
        case Mapping() | list() | tuple():
            return _inside(cast("Mapping[object, object] | Sequence[object]", value), depth) if depth else "…"
        case _:
            return f"({type(value).__name__})"


def near(word: str, known: Iterable[str]) -> str:
    """`" (did you mean …?)"` for the nearest known word, or nothing."""
    alike = difflib.get_close_matches(word[:_LONGEST_NAME].lower(), list(known), n=1, cutoff=0.6)
    return f" (did you mean {alike[0]}?)" if alike else ""


def shown(name: object) -> str:
    """A name from outside as it may stand in a message: short, and in ASCII, so that a look-alike shows."""
    return ascii(str(name)[:_LONGEST_NAME])[1:-1][:_LONGEST_NAME]


def _inside(value: Mapping[object, object] | Sequence[object], depth: int) -> str:
    parts = [glimpse(each, depth - 1) for each in islice(value, _GLIMPSE)]
    if isinstance(value, Mapping):
        parts = [f"{name}: {glimpse(each, depth - 1)}" for name, each in zip(parts, value.values(), strict=False)]
    text = ", ".join([*parts, *([f"… {len(value) - _GLIMPSE} more"] if len(value) > _GLIMPSE else [])])
    return f"{{{text}}}" if isinstance(value, Mapping) else f"[{text}]"


def _refuse(sentence: str) -> NoReturn:
    raise ToolFailure(code="invalid_arguments", message=f"{sentence}. Nothing was done.")


def _parsed(text: str) -> object:
    if len(text) > MOST_CHARACTERS:
        _refuse(f"the arguments are longer than {MOST_CHARACTERS} characters")
    if not text.strip():
        return {}
    try:
        return json.loads(text, object_pairs_hook=_once_each, parse_constant=_no_number)
    except RecursionError:
        sentence = f"the arguments are nested deeper than {MOST_DEPTH} levels"
    except json.JSONDecodeError as exc:
        more = "there is more text after the JSON object; send one call an object" if exc.msg == "Extra data" else None
        sentence = f"the arguments are no JSON: {more or exc.msg[:_LONGEST_NAME]} (character {exc.pos + 1})"
    except ValueError:  # an integer of thousands of digits
        sentence = "a number is too big"
    _refuse(sentence)


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in found if times[name] > 1)
        _refuse(f"{shown(twice)} is given twice")
    return found


def _no_number(constant: str) -> NoReturn:
    _refuse(f"{constant} is not a number that JSON has")


def _check(given: Mapping[Any, object]) -> None:
    """Refuse what no argument may hold, at any depth: without recursion, and stopping at the first bound."""
    if not all(isinstance(name, str) for name in given):
        _refuse("the name of an argument must be a text")
    values, characters = 0, sum(map(len, given))
    waiting: list[tuple[str, int, object]] = [(shown(name), 1, value) for name, value in given.items()]
    while waiting:
        name, depth, value = waiting.pop()
        values += 1
        characters += len(value) if isinstance(value, str) else 0
        if values > MOST_VALUES:
            _refuse(_MANY_VALUES)
        if characters > MOST_CHARACTERS:
            _refuse(f"the arguments hold more than {MOST_CHARACTERS} characters")
        if depth > MOST_DEPTH:
            _refuse(f"{name} is nested deeper than {MOST_DEPTH} levels")
        flaw = _flaw(value)
        if flaw is not None:
            _refuse(f"{name} {flaw}")
        waiting += [(name, depth + 1, child) for child in islice(_children(value), MOST_VALUES + 1)]


def _children(value: object) -> Iterable[object]:
    """What a container holds, names included."""
    if isinstance(value, Mapping):
        return chain.from_iterable(cast("Mapping[object, object]", value).items())
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _flaw(value: object) -> str | None:
    """What is wrong with a value by itself, wherever it stands."""
    match value:
        case str():
            return _flaw_of_text(value)
        case None | bool() | Mapping() | list() | tuple():
            return None
        case int():
            return "is too big a number" if abs(value) > LARGEST_INTEGER else None
        case float():
            return None if math.isfinite(value) else "is not a finite number"
        case _:
            return "is of a type that JSON does not have"


def _flaw_of_text(text: str) -> str | None:
    if "\0" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no text"
    return None


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case _:
            return "something else"


def _explained(error: ValidationError, model: type[Arguments]) -> str:
    """Short sentences, one a mistake: which argument, and what is allowed there."""
    details = error.errors(include_url=False, include_input=False)
    sentences = list(dict.fromkeys(_sentence(detail, model) for detail in details[:_MOST_DETAILS]))
    more = len(sentences[_MOST_SENTENCES:]) + len(details[_MOST_DETAILS:])
    told = [*sentences[:_MOST_SENTENCES], *([f"and {more} more mistakes"] if more > 0 else [])]
    return f"{'; '.join(told)}. Nothing was done."


def _sentence(detail: ErrorDetails, model: type[Arguments]) -> str:
    names = list(model.model_fields)
    place = ".".join(shown(part) for part in detail["loc"][:3]) or "the arguments"
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            known = f"the arguments are {', '.join(names)}" if names else "it takes none"
            return f"{place} is not an argument of this tool{near(str(detail['loc'][-1]), names)}: {known}"
        case "missing":
            return f"{place} is missing"
        case "string_pattern_mismatch":
            return f"{place} has not the right form{_form(str(context.get('pattern', '')))}"
        case "value_error" | "assertion_error":
            return f"{place}: {context.get('error', 'not allowed')}"
        case _:
            text = detail["msg"]
            return f"{place}: {text[:1].lower()}{text[1:]}"


def _form(pattern: str) -> str:
    return ": an id has 24 hexadecimal digits, as another tool's result gave it" if "{24}" in pattern else ""
