"""The tools as each consumer takes them: chat completions (nested), Responses (flat and strict), MCP.

The schemas keep to what Gemini, OpenAI's strict mode and JSON Schema drafts 7 and 2020-12 all take: one flat
object of scalars and lists of scalars, references inlined, enums of strings, `anyOf: [T, null]` for what may be null,
nothing else. Bounds and forms stay in pydantic, which refuses with a sentence.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from pydantic import BaseModel

from brain.tool import AnyTool, Arguments

Schema = dict[str, Any]
Format = Literal["chat", "responses", "mcp"]

_KEPT: Final = ("type", "description", "enum")
_SCALARS: Final = ("string", "integer", "number", "boolean", "null")
_MOST_DEPTH: Final = 12


class Unfit(ValueError):
    """A model cannot be told in the common subset: the sentence says where and why."""


def rendered(tools: Iterable[AnyTool], form: Format) -> list[Schema]:
    """Every tool, in order. Raises Unfit."""
    return [_FORMS[form](tool) for tool in tools]


def fingerprint(tools: Iterable[AnyTool]) -> str:
    """16 hex digits that change when anything that a model is told of the tools changes."""
    text = json.dumps(rendered(tools, "mcp"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parameters(model: type[Arguments], *, strict: bool = False) -> Schema:
    """The arguments as one flat object.

    In strict mode every argument must be named, so those with a default may be null: the registry reads null as left
    out. Raises Unfit.
    """
    raw = model.model_json_schema()
    required: list[str] = [name for name in raw.get("properties", {}) if strict or name in raw.get("required", ())]
    optional = set(raw.get("properties", {})) - set(raw.get("required", ()))
    properties: dict[str, Schema] = {}
    for name, raw_property in raw.get("properties", {}).items():
        told = _simple(raw_property, raw.get("$defs", {}), name)
        _check_flat(told, name)
        properties[name] = _nullable(told) if strict and name in optional else told
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def result(model: type[BaseModel]) -> Schema:
    """The `data` of a result, for MCP's clients; nested as it is. Raises Unfit."""
    raw = model.model_json_schema(mode="serialization", by_alias=True)
    raw.pop("description", None)  # the class's docstring is for programmers
    return _simple(raw, raw.get("$defs", {}), model.__name__)


def chat(tool: AnyTool) -> Schema:
    """For chat completions (OpenRouter, Gemini): nested under `function`."""
    function = {"name": tool.name, "description": tool.description, "parameters": parameters(tool.arguments)}
    return {"type": "function", "function": function}


def responses(tool: AnyTool) -> Schema:
    """For OpenAI's Responses API: flat and strict."""
    told = parameters(tool.arguments, strict=True)
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": told,
        "strict": True,
    }


def mcp(tool: AnyTool) -> Schema:
    """For MCP: with the result's schema, and all four hints said, because two of their defaults are the bad case."""
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": parameters(tool.arguments),
        "outputSchema": result(tool.result),
        "annotations": {
            "readOnlyHint": tool.effect == "read",
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.effect == "read" or tool.idempotent,
            "openWorldHint": False,  # TrickBook's own database, nothing beyond
        },
    }


_FORMS: Final[Mapping[Format, Callable[[AnyTool], Schema]]] = {"chat": chat, "responses": responses, "mcp": mcp}
FORMATS: Final = tuple(_FORMS)


def _simple(raw: Mapping[str, Any], defs: Mapping[str, Any], place: str, depth: int = 0) -> Schema:
    """A schema with references inlined, and only the words that everybody knows."""
    if depth > _MOST_DEPTH:
        message = f"{place} is recursive, or nested deeper than {_MOST_DEPTH} levels"
        raise Unfit(message)
    raw = _inlined(raw, defs)
    told: Schema = {key: raw[key] for key in _KEPT if key in raw}
    if "const" in raw:
        told["enum"] = [raw["const"]]
    if raw.keys() & {"oneOf", "allOf", "prefixItems", "not", "if"}:
        message = f"{place} is of a kind that not every consumer takes ({', '.join(sorted(raw.keys()))})"
        raise Unfit(message)
    if "anyOf" in raw:
        told["anyOf"] = [_simple(each, defs, place, depth + 1) for each in raw["anyOf"]]
    if "items" in raw:
        told["items"] = _simple(raw["items"], defs, place, depth + 1)
    if raw.get("type") == "object":
        told |= _object(raw, defs, place, depth)
    return told


def _inlined(raw: Mapping[str, Any], defs: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference stands for, with the description beside it: a class's own docstring is for programmers."""
    while "$ref" in raw:
        beside = {key: value for key, value in raw.items() if key != "$ref"}
        meant: Mapping[str, Any] = defs[str(raw["$ref"]).rpartition("/")[2]]
        raw = {key: value for key, value in meant.items() if key != "description"} | beside
    return raw


def _object(raw: Mapping[str, Any], defs: Mapping[str, Any], place: str, depth: int) -> Schema:
    held: Mapping[str, Any] = raw.get("properties", {})
    others = raw.get("additionalProperties", True)
    told: Schema = {}
    if held:
        told["properties"] = {name: _simple(each, defs, f"{place}.{name}", depth + 1) for name, each in held.items()}
        told["required"] = [name for name in held if name in raw.get("required", ())]
    elif isinstance(others, Mapping) and others:
        told["additionalProperties"] = _simple(cast("Mapping[str, Any]", others), defs, place, depth + 1)
    return told


def _check_flat(told: Schema, place: str) -> None:
    """A scalar, a list of scalars, or one of these or null; enums of strings."""
    for each in cast("Sequence[Schema]", told.get("anyOf", [told])):
        inner = cast("Schema", each.get("items", {})) if each.get("type") == "array" else each
        if inner.get("type") not in _SCALARS:
            message = f"{place} is no scalar and no list of scalars: tool arguments are flat"
            raise Unfit(message)
        if "enum" in inner and inner["type"] != "string":
            message = f"{place} allows values that are no strings: enums of strings alone are taken everywhere"
            raise Unfit(message)


def _nullable(told: Schema) -> Schema:
    """The same or null, with the description on the outside."""
    kinds = cast(
        "list[Schema]", told.get("anyOf", [{key: value for key, value in told.items() if key != "description"}])
    )
    if {"type": "null"} not in kinds:
        kinds = [*kinds, {"type": "null"}]
    return {key: told[key] for key in ("description",) if key in told} | {"anyOf": kinds}
