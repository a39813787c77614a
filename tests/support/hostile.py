"""Arguments that no honest model sends, for any tool, made from its own schema."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from brain.tool import AnyTool

PROMISED: Final = 0.1
"""Seconds until a refusal, of this process's processor: a busy machine does not stretch those."""

RUNS: Final = 3
"""The best of them counts, since the others may hold a collection of garbage."""

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
UNSEEN: Final[Mapping[str, str]] = {
    "nothing": "",
    "blanks": " \n\t ",
    "what no reader sees": "\u200b\u2060",
    "a joiner": "\u200d",
    "tags alone": "<b></b>",
    "a line end": "<br>",
    "a comment": "<!-- kickflip -->",
    "a script": "<script>kickflip</script>",
}
"""Texts in which a reader finds no word: taken for a pattern, each would match everything."""
MAY_BE_UNSEEN: Final = {("remember_user_info", "user_name"), ("remember_user_info", "fact")}
"""Where such a text says that there is nothing to remember."""
NAMES: Final = ("$where", "user_id", "userId", "user.$id", "__proto__", "constructor", "a" * 10_000, "\u202equery", "")
TEXTS: Final[Mapping[str, str]] = {
    "depth 10^4": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "10 MB": '{"a": "' + "a" * 10_000_000 + '"}',
    "an array": "[]",
    "null": "null",
    "a number": "5",
    "two objects": "{}{}",
    "NaN": '{"a": NaN}',
    "beginnings of addresses": '{"a": "' + "://a:" * 6_000 + '"}',
    "cut off": '{"a": "b',
    "thousands of digits": '{"a": ' + "9" * 20_000 + "}",
    "no JSON": "DROP TABLE users; --",
    "a name twice": '{"a": 1, "a": 2}',
    "one of thousands of names twice": "{" + "".join(f'"{each}":1,' for each in range(3_000)) + '"2999":1}',
    "thousands of names": "{" + ",".join(f'"name{each}":1' for each in range(1_900)) + "}",
}


def giants() -> dict[str, Mapping[str, object]]:
    """Arguments that a caller has parsed already, far too big for any tool: to be made once, since they take memory."""
    numbers: dict[str, object] = dict.fromkeys(map(str, range(1_000_000)), 1)
    lists, objects = cast("object", 1), cast("object", 1)
    for _ in range(10_000):
        lists, objects = [lists], {"a": objects}
    values: dict[str, object] = {
        "a million items": [0] * 1_000_000,
        "lists of lists": [[0] * 1_900] * 1_900,
        "lists of lists of lists": [[[0] * 100] * 100] * 100,
        "a million members": numbers,
        "depth 10^4 of lists": lists,
        "depth 10^4 of objects": objects,
        "a million digits": 10**1_000_000,
        "not a number": float("nan"),
        "infinity": float("-inf"),
        "10 MB of bytes": bytes(10_000_000),
        "10 MB in pieces": ["a" * 10_000] * 1_000,
    }
    return {
        "a million names": numbers,
        "a million names of nothing": dict.fromkeys(numbers),
        "a name of 10 MB": {"a" * 10_000_000: 1},
        "names of 10 MB together": {f"{'a' * 1_000_000}{number}": 1 for number in range(10)},
        "a name that is a number of a million digits": cast("Mapping[str, object]", {10**1_000_000: 1}),
        **{f"{what} as an unknown argument": {"a": value} for what, value in values.items()},
    }


def refused(tool: AnyTool) -> Iterator[tuple[str, str | Mapping[str, object]]]:
    """Arguments that must be refused, each with what it is; as JSON text, and as a caller may have parsed it."""
    good = honest(tool)
    for what, text in TEXTS.items():
        yield what, text
    for name in NAMES:
        yield f"the argument {name[:20]!r}", json.dumps({**good, name: "x"})
    for name in good:
        for what, value in UNSEEN.items() if (tool.name, name) not in MAY_BE_UNSEEN else ():
            yield f"{what} as {name}", {**good, name: value}
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
    "o" * 200,
    "o " * 99 + "o",
    "\u00f8, " * 66,
    "&lt;b&gt;",
    "&amp;lt;b&amp;gt;",
    "((((((((((x))))))))))*" * 8,
    "'; return true; //",
    "${jndi:ldap://x}",
)
"""Texts that are fine as words, and ruin whoever takes them for a pattern."""
