"""The YAML between `---` lines at the start of a page."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, cast

import yaml

from brain.knowledge.domain.clean import scrub

LONGEST: Final = 64_000
"""Characters of front matter that are read; more is a mistake in the file."""
_MOST_DEPTH: Final = 8
_MOST_INT: Final = 2**63  # what BSON can hold
_BLOCK: Final = re.compile(r"\A\s*---[ \t]*\n(.*?)(?:^|\n)---[ \t]*(?:\n|\Z)", re.DOTALL)

# The C loader is about ten times faster where libyaml is there; both are safe loaders.
_LOADER: Final = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The values, of JSON's types; the page without them; what was wrong with them (then there are no values)."""

    values: Mapping[str, object] = field(default_factory=dict[str, object])
    body: str = ""
    problem: str | None = None


def split_front_matter(text: str) -> FrontMatter:
    """Take the front matter off a page. Text without any comes back whole."""
    match = _BLOCK.match(text[: LONGEST + 1])
    if match is None:
        return FrontMatter(body=text)
    body = text[match.end() :]
    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(match.group(1), _LOADER)):
            return FrontMatter(body=body, problem="front matter uses YAML aliases")  # a few bytes can mean gigabytes
        loaded = cast("object", yaml.load(match.group(1), _LOADER))  # noqa: S506 - a safe loader, see above
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date such as 2026-13-45
        return FrontMatter(body=body, problem=f"front matter is not YAML: {' '.join(str(error).split())[:200]}")
    if loaded is None:
        return FrontMatter(body=body)
    if not isinstance(loaded, Mapping):
        return FrontMatter(body=body, problem="front matter is not a mapping")
    return FrontMatter(cast("dict[str, object]", plain(cast("object", loaded))), body)


def plain(value: object, depth: int = 0) -> object:
    """A value as JSON and BSON both hold it: dates as ISO strings, keys as strings; what is too deep or odd is None."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping | list | tuple | set):
        return _plain_members(cast("Mapping[object, object] | Sequence[object]", value), depth)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) < _MOST_INT else None
    return None


def _plain_members(value: Mapping[object, object] | Sequence[object], depth: int) -> object:
    if depth >= _MOST_DEPTH:
        return None
    if isinstance(value, Mapping):
        return {scrub(str(key)): plain(item, depth + 1) for key, item in value.items()}
    return [plain(item, depth + 1) for item in value]


def is_set(values: Mapping[str, object], name: str) -> bool:
    """Whether this switch is on: YAML's true, or the word in any case."""
    value = values.get(name)
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")
