"""The common subset of schemas that Gemini, OpenAI's strict mode and JSON Schema take, as rules.

Written from reports of what they refuse (their users' issues, OpenAI's own `strict_schema.py`), not from our renderer.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

Schema = dict[str, Any]

KNOWN: Final = {"type", "description", "enum", "anyOf", "items", "properties", "required", "additionalProperties"}
MOST_PROPERTIES: Final = 100  # OpenAI's old limits; ours stay far below either
MOST_ENUM: Final = 500
MOST_LEVELS: Final = 5


def mistakes(schema: Schema, *, strict: bool) -> list[str]:
    """What some consumer would refuse about the parameters of a function."""
    found = [*_root(schema), *_all(schema, "", 1)]
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    if strict and schema.get("required") != list(properties):
        found.append("strict mode wants every property required")
    if not strict and not set(schema.get("required", ())) <= set(properties):
        found.append("a required property is not there")
    if len(properties) > MOST_PROPERTIES:
        found.append("too many properties")
    return found


def _root(schema: Schema) -> Iterator[str]:
    if schema.get("type") != "object" or "anyOf" in schema:
        yield "the root must be a plain object"
    if schema.get("additionalProperties") is not False:
        yield "the root must refuse other properties"
    if not isinstance(schema.get("properties"), dict) or not isinstance(schema.get("required"), list):
        yield "the root must name its properties and the required ones"


def _all(schema: Schema, place: str, level: int) -> Iterator[str]:
    """Every level's mistakes."""
    for word in sorted(schema.keys() - KNOWN):
        yield f"{place}: {word} is refused by somebody"
    if level > MOST_LEVELS:
        yield f"{place}: too deep"
        return
    if level > 1 and schema.get("type") == "object":
        yield f"{place}: an object inside the object"
    if isinstance(schema.get("type"), list):
        yield f"{place}: a list of types is refused by Gemini"
    if ("type" in schema) == ("anyOf" in schema):
        yield f"{place}: either a type or anyOf"
    yield from _enum(schema, place)
    yield from _any_of(schema, place)
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{place}: a list of what?"
    inner = [("[]", schema["items"])] if "items" in schema else []
    inner += [(f"|{n}", each) for n, each in enumerate(schema.get("anyOf", ()))]
    inner += [(f".{name}", each) for name, each in schema.get("properties", {}).items()]
    for name, each in inner:
        yield from _all(cast("Schema", each), f"{place}{name}", level + 1)


def _enum(schema: Schema, place: str) -> Iterator[str]:
    values = cast("list[object]", schema.get("enum", ["x"]))
    if not values or len(values) > MOST_ENUM or len(set(map(str, values))) != len(values):
        yield f"{place}: an enum that is empty, too long, or has one value twice"
    if not all(isinstance(value, str) for value in values) or ("enum" in schema and schema.get("type") != "string"):
        yield f"{place}: an enum of strings alone is taken everywhere"


def _any_of(schema: Schema, place: str) -> Iterator[str]:
    kinds = cast("list[Schema]", schema.get("anyOf", [{"type": "null"}, {}]))
    if len(kinds) != 2 or {"type": "null"} not in kinds:
        yield f"{place}: anyOf is for T or null"
