"""Arguments that no honest model sends, for any tool, made from its own schema (faults.md B5, B6)."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from brain.tool import AnyTool

ID: Final = "64b000000000000000000001"
WORDS: Final = {"video_url": "https://video.example/watch?v=1"}
"""A plain text for an argument, by its name, where any word would not do."""


def honest(tool: AnyTool) -> dict[str, Any]:
    """Arguments that the tool understands: every one that it has, with a plain value."""
    raw = tool.arguments.model_json_schema()
    defs = raw.get("$defs", {})
    return {name: WORDS.get(name, _plain(each, defs)) for name, each in raw.get("properties", {}).items()}


def _plain(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> object:
    if "$ref" in schema:
        schema = defs[str(schema["$ref"]).rpartition("/")[2]]
    kinds = cast("list[Mapping[str, Any]]", schema.get("anyOf", [schema]))
    kind = next(each for each in kinds if each.get("type") != "null")
    if "$ref" in kind:
        return _plain(kind, defs)
    if "enum" in kind or "const" in kind:
        return kind["const"] if "const" in kind else kind["enum"][0]
    match kind.get("type"):
        case "string":
            return ID if "24" in kind.get("pattern", "") else "kickflip"
        case "array":
            return [_plain(kind["items"], defs)]
        case "boolean":
            return True
        case _:
            return 1


def _deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"$and": [value]}
    return value


VALUES: Final[Mapping[str, object]] = {
    "an operator": {"$gt": ""},
    "a regular expression": {"$regex": "(a+)+$"},
    "javascript": {"$where": "sleep(10000)"},
    "a function": {"$function": {"body": "f", "args": [], "lang": "js"}},
    "a prototype": {"__proto__": {"admin": True}},
    "a dotted key": {"user.$id": ID},
    "an array of operators": [{"$ne": None}],
    "an empty object": {},
    "depth": _deep(50),
    "a huge integer": 10**30,
    "a NUL": "a\0b",
    "half a surrogate pair": "\ud800",
    "10 MB": "a" * 10_000_000,
    "a megabyte of items": ["a"] * 200_000,
}
NAMES: Final = ("$where", "user_id", "userId", "user.$id", "__proto__", "constructor", "a" * 10_000, "\u202equery", "")
TEXTS: Final[Mapping[str, str]] = {
    "depth 10^4": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "10 MB": '{"a": "' + "a" * 10_000_000 + '"}',
    "an array": "[]",
    "null": "null",
    "a number": "5",
    "two objects": "{}{}",
    "NaN": '{"a": NaN}',
    "cut off": '{"a": "b',
    "thousands of digits": '{"a": ' + "9" * 20_000 + "}",
    "no JSON": "DROP TABLE users; --",
    "a name twice": '{"a": 1, "a": 2}',
    "one of thousands of names twice": "{" + "".join(f'"{each}":1,' for each in range(3_000)) + '"2999":1}',
    "thousands of names": "{" + ",".join(f'"name{each}":1' for each in range(1_900)) + "}",
}


def refused(tool: AnyTool) -> Iterator[tuple[str, str | Mapping[str, object]]]:
    """Arguments that must be refused, each with what it is; as JSON text, and as a caller may have parsed it."""
    good = honest(tool)
    for what, text in TEXTS.items():
        yield what, text
    for name in NAMES:
        yield f"the argument {name[:20]!r}", json.dumps({**good, name: "x"})
    for name in good:
        for what, value in VALUES.items():
            if value != [] and not (what == "an empty object" and value == good[name]):
                yield f"{what} as {name}", {**good, name: value}
                yield f"{what} as {name}", json.dumps({**good, name: value})


PATTERNS: Final = (
    "(a+)+$",
    "(?:a|a)*b",
    "50-50 (switch",
    "c++ [",
    "\\",
    ".*",
    "^" + "a?" * 90,
    "((((((((((x))))))))))*" * 8,
    "'; return true; //",
    "${jndi:ldap://x}",
)
"""Texts that are fine as words, and ruin whoever takes them for a pattern."""
