"""The sample data as tests read it: rows by the numbers of its README, files and pages."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, cast

import yaml
from bson import json_util
from bson.objectid import ObjectId

SAMPLE = Path(__file__).parents[2] / "deploy" / "sample"
DOCS = SAMPLE / "docs"
TODAY = datetime(2026, 11, 30, tzinfo=UTC)

Row: TypeAlias = dict[str, Any]

PREFIXES = {
    "users": "10",
    "coaching": "20",
    "spots": "30",
    "couch_videos": "40",
    "media_library": "41",
    "media_collections": "42",
    "events": "70",
    "riders": "71",
    "companion_profiles": "72",
    "tricklists": "73",
    "tricks": "74",
    "spotlists": "75",
    "spot_reviews": "76",
    "spot_trick_history": "77",
    "feed_posts": "78",
    "comments": "79",
    "bot_chats": "7a",
    "conversations": "7b",
    "dm_messages": "7c",
    "categories": "7d",
    "shops": "7e",
    "blog": "7f",
}


def load(collection: str) -> list[Row]:
    """Every row of a sample collection, as a driver would return it."""
    text = (SAMPLE / f"{collection}.json").read_text(encoding="utf-8")
    rows: list[Row] = json_util.loads(text, json_options=json_util.JSONOptions(tz_aware=True))
    return rows


def the_id(collection: str, number: int) -> str:
    """The hex id that the README's scheme gives to a row."""
    return f"{PREFIXES[collection]}{number:022d}"


def row(collection: str, number: int) -> Row:
    """One row by its number in the README."""
    wanted = ObjectId(the_id(collection, number))
    return next(found for found in load(collection) if found["_id"] == wanted)


def ids(collection: str) -> set[str]:
    """The hex ids of a collection."""
    return {str(found["_id"]) for found in load(collection)}


def numbers(collection: str, rows: list[Row]) -> set[int]:
    """The README's numbers of the given rows."""
    return {int(str(found["_id"])[2:]) for found in rows if str(found["_id"]).startswith(PREFIXES[collection])}


def sample_files() -> list[Path]:
    """Every file of the sample except the tricks, which have a test of their own."""
    return [
        path
        for path in sorted(SAMPLE.rglob("*"))
        if path.is_file() and "trickipedia" not in path.relative_to(SAMPLE).parts
    ]


def front_matter(path: Path) -> Row:
    """A page's front matter, empty when it has none."""
    found = re.match(r"---\n(.*?)\n---\n", path.read_text(encoding="utf-8"), re.DOTALL)
    return yaml.safe_load(found[1]) if found else {}


def pages() -> list[Path]:
    """Every Markdown and MDX file of the docs tree."""
    return sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.mdx")])


def dangling(targets: list[str], collection: str) -> list[str]:
    """The targets that are no row of the collection."""
    known = ids(collection)
    return [target for target in targets if target not in known]


def each(value: Any) -> list[str]:  # noqa: ANN401 - a stored reference, a list of them, or a map keyed by them
    """The ids in one field of a row, as hex."""
    several = cast("list[object]", value) if isinstance(value, list | dict) else [value]
    return [str(one) for one in several]


def strings(value: object) -> Iterator[str]:
    """Every string inside a decoded value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from strings(inner)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from strings(inner)  # pyright: ignore[reportUnknownArgumentType]
