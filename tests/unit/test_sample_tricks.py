"""The sample trick catalogue is large enough, sound as a graph, and odd exactly where ODD_SHAPES.md says."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from bson import json_util
from bson.objectid import ObjectId

TRICKS = Path(__file__).parents[2] / "deploy" / "sample" / "trickipedia"

Trick: TypeAlias = dict[str, Any]

COUNTS = {
    "skateboarding": 34,
    "snowboarding": 32,
    "bmx": 15,
    "surfing": 14,
    "longboarding": 10,
    "inline-skating": 12,
    "scooter": 12,
}
CATEGORIES = {
    "skateboarding": "Skateboarding",
    "snowboarding": "Snowboarding",
    "bmx": "BMX",
    "surfing": "Surfing",
    "longboarding": "Longboarding",
    "inline-skating": "Inline Skating",
    "scooter": "Scooter",
}
FIELDS = {
    *("_id", "name", "category", "difficulty", "description", "steps", "tips", "commonMistakes", "safety", "aliases"),
    *("images", "videoUrl", "videos", "tutorials", "progression", "source", "audit", "url", "createdAt", "updatedAt"),
}
DIFFICULTIES = {"Beginner", "Intermediate", "Advanced", "Expert"}
STATUSES = {"draft", "reviewed", "published", "disputed", "rejected"}
STRENGTHS = {"required", "recommended", "helpful"}
RELATIONS = {"variation", "opposite-direction", "same-family", "combination", "terrain-transfer"}
LONG_WORDS = 600
ROW = re.compile(r"^\| `(?P<id>[0-9a-f]{24})` \| (?P<name>[^|]+) \| `(?P<shape>[a-z-]+)` \|", re.MULTILINE)


@cache
def load(sport: str) -> tuple[Trick, ...]:
    """The tricks of one file, as the database would hold them."""
    return tuple(json_util.loads((TRICKS / f"{sport}.json").read_text(encoding="utf-8")))


def tricks() -> Iterator[tuple[str, Trick]]:
    """Every trick with the sport whose file it stands in."""
    for sport in COUNTS:
        for trick in load(sport):
            yield sport, trick


def progression(trick: Trick) -> dict[str, list[Trick]]:
    """The lists of edges of a trick; none for a trick that was imported without them."""
    return trick.get("progression", {})


def edges(trick: Trick) -> Iterator[tuple[str, Trick]]:
    """Every edge of a trick with the list it stands in."""
    for part, found in progression(trick).items():
        for edge in found:
            yield part, edge


def texts(trick: Trick, *names: str) -> list[Any]:
    """The elements of some of a trick's list fields, as stored; a field that is not a list counts as one element."""
    found: list[Any] = []
    for name in names:
        value = trick.get(name, [])
        found += value if isinstance(value, list) else [value]
    return found


def words(trick: Trick) -> int:
    """How many words the lists of a trick hold in all."""
    return sum(len(str(text).split()) for text in texts(trick, "steps", "tips", "commonMistakes", "safety"))


def keys_of_steps(trick: Trick) -> set[str]:
    """The keys that the elements of a trick's steps have, where they are objects."""
    objects: list[Trick] = [step for step in texts(trick, "steps") if isinstance(step, dict)]
    return {key for step in objects for key in step}


def every_id() -> set[ObjectId]:
    """The ids of all tricks in all files."""
    return {trick["_id"] for _, trick in tricks()}


SHAPES: dict[str, Callable[[Trick], bool]] = {
    "missing-fields": lambda t: FIELDS - t.keys() == {"tutorials", "progression", "audit", "tips", "aliases"},
    "mixed-videos": lambda t: {type(video) for video in t["videos"]} == {str, dict},
    "regex-name": lambda t: re.search(r"[()+*?\[\]{}|^$.\\]", t["name"]) is not None,
    "bare-edges": lambda t: any(
        ("strength" not in edge and part == "prerequisites") or ("relation" not in edge and part == "related")
        for part, edge in edges(t)
    ),
    "html-description": lambda t: re.search(r"<[a-z]+/?>", t["description"] or "") is not None,
    "null-audit": lambda t: t.get("audit", ...) is None,
    "string-steps": lambda t: isinstance(t["steps"], str) and "\n" in t["steps"],
    "dangling-edge": lambda t: any(ObjectId(edge["trickId"]) not in every_id() for _, edge in edges(t)),
    "long": lambda t: words(t) > LONG_WORDS,
    "sport-types": lambda t: "sportTypes" in t,
    "text-steps": lambda t: keys_of_steps(t) == {"text"},
    "titled-steps": lambda t: keys_of_steps(t) == {"title", "description"},
    "category-case": lambda t: t["category"] not in CATEGORIES.values(),
    "string-edge": lambda t: any(isinstance(edge["trickId"], str) for _, edge in edges(t)),
    "null-aliases": lambda t: t.get("aliases", ...) is None,
    "mixed-tips": lambda t: {str, int, type(None)} <= {type(tip) for tip in texts(t, "tips")},
    "no-difficulty": lambda t: "difficulty" not in t,
    "null-description": lambda t: t["description"] is None,
    "numbered-difficulty": lambda t: re.search(r"\d", t.get("difficulty", "")) is not None,
}


def listed() -> dict[str, set[tuple[str, str]]]:
    """What ODD_SHAPES.md says: for each shape the ids and names of its tricks."""
    found: dict[str, set[tuple[str, str]]] = {}
    for row in ROW.finditer((TRICKS / "ODD_SHAPES.md").read_text(encoding="utf-8")):
        found.setdefault(row["shape"], set()).add((row["id"], row["name"]))
    return found


def regular() -> Iterator[tuple[str, Trick]]:
    """Every trick that ODD_SHAPES.md does not list, with its sport."""
    odd = {identity for rows in listed().values() for identity, _ in rows}
    return ((sport, trick) for sport, trick in tricks() if str(trick["_id"]) not in odd)


@pytest.mark.parametrize(("sport", "count"), COUNTS.items())
def test_each_sport_has_its_tricks(sport: str, count: int) -> None:
    """A file holds as many tricks as the catalogue promises, all of the file's own sport."""
    assert len(load(sport)) == count
    assert {trick["category"].strip().lower() for trick in load(sport)} == {CATEGORIES[sport].lower()}


def test_all_seven_sports_are_there() -> None:
    """There is one file for each sport and no other, and at least 120 tricks in all."""
    assert {path.stem for path in TRICKS.glob("*.json")} == set(COUNTS)
    assert len(list(tricks())) >= 120


def test_ids_are_unique_and_of_the_right_type() -> None:
    """Every trick has an ObjectId of its own across all files."""
    ids = [trick["_id"] for _, trick in tricks()]
    assert all(isinstance(identity, ObjectId) for identity in ids)
    assert len(set(ids)) == len(ids)


def test_names_are_unique_within_a_sport() -> None:
    """A name stands once in a sport; across sports some names, and so their slugs, are shared."""
    names = [trick["name"] for _, trick in tricks()]
    for sport in COUNTS:
        own = [trick["name"] for trick in load(sport)]
        assert len(set(own)) == len(own)
    shared = Counter(names)
    assert shared["Ollie"] == 2
    assert shared["Manual"] == 3


def test_slugs_follow_the_rule() -> None:
    """The stored slug is the name in lower case, each other run of characters one dash, none at the edges."""
    for _, trick in tricks():
        assert trick["url"] == re.sub(r"[^a-z0-9]+", "-", trick["name"].lower()).strip("-")


def test_regular_tricks_are_whole() -> None:
    """A trick that is not listed as odd has every field, in the shape that current writers give it."""
    for sport, trick in regular():
        name = trick["name"]
        assert trick.keys() == FIELDS, name
        assert trick["category"] == CATEGORIES[sport], name
        assert trick["difficulty"] in DIFFICULTIES, name
        assert 4 <= len(trick["steps"]) <= 7, name
        assert 2 <= len(trick["tips"]) <= 3, name
        assert 2 <= len(trick["commonMistakes"]) <= 3, name
        assert 1 <= len(trick["safety"]) <= 2, name
        written = texts(trick, "description", "steps", "tips", "commonMistakes", "safety", "aliases")
        assert all(isinstance(text, str) and text.strip() for text in written), name
        assert trick["createdAt"] <= trick["updatedAt"], name


def test_tutorials_point_at_example_hosts_only() -> None:
    """Every tutorial and video address belongs to a domain that is reserved for examples."""
    for _, trick in tricks():
        videos = [video if isinstance(video, str) else video["url"] for video in trick["videos"]]
        for url in videos + [tutorial["canonicalUrl"] for tutorial in trick.get("tutorials", [])]:
            assert re.match(r"https://([a-z]+\.)?example\.com/", url), url


def test_edges_carry_known_words() -> None:
    """Each edge has a reason and a known status; strength and relation stand where they belong, and only there."""
    bare = {identity for identity, _ in listed()["bare-edges"]}
    for _, trick in tricks():
        for part, edge in edges(trick):
            assert edge["reason"], trick["name"]
            assert edge["research"]["status"] in STATUSES, trick["name"]
            if str(trick["_id"]) in bare:
                continue
            assert edge.get("strength") in (STRENGTHS if part == "prerequisites" else {None}), trick["name"]
            assert edge.get("relation") in (RELATIONS if part == "related" else {None}), trick["name"]


def test_most_edges_may_be_shown() -> None:
    """Nine edges in ten are reviewed or published, and each hidden status occurs."""
    statuses = Counter(edge["research"]["status"] for _, trick in tricks() for _, edge in edges(trick))
    assert statuses.keys() == STATUSES
    assert statuses["reviewed"] + statuses["published"] >= 0.9 * statuses.total()


def test_edges_stay_within_their_sport() -> None:
    """An edge joins two tricks of one sport and never a trick to itself; only a listed one leads nowhere."""
    sports = {trick["_id"]: sport for sport, trick in tricks()}
    dangling: set[str] = set()
    for sport, trick in tricks():
        for _, edge in edges(trick):
            target = ObjectId(edge["trickId"])
            assert target != trick["_id"], trick["name"]
            if target in sports:
                assert sports[target] == sport, trick["name"]
            else:
                dangling.add(str(trick["_id"]))
    assert dangling == {identity for identity, _ in listed()["dangling-edge"]}


def test_no_list_names_a_trick_twice() -> None:
    """Within one list of a trick the targets differ and the order counts up from one."""
    for _, trick in tricks():
        for found in progression(trick).values():
            targets = [ObjectId(edge["trickId"]) for edge in found]
            assert len(set(targets)) == len(targets), trick["name"]
            assert [edge["order"] for edge in found] == list(range(1, len(found) + 1)), trick["name"]


def test_prerequisites_have_no_circle() -> None:
    """Whatever an edge's status, no trick is its own prerequisite, however long the way round."""
    graph: dict[ObjectId, set[ObjectId]] = {trick["_id"]: set() for _, trick in tricks()}
    for _, trick in tricks():
        for part, edge in edges(trick):
            if part == "prerequisites":
                graph[trick["_id"]].add(ObjectId(edge["trickId"]))
    assert len(list(TopologicalSorter(graph).static_order())) >= 120


@pytest.mark.parametrize("shape", SHAPES)
def test_each_odd_shape_is_there_and_listed(shape: str) -> None:
    """The tricks of an odd shape are exactly those that ODD_SHAPES.md lists under it."""
    found = {(str(trick["_id"]), trick["name"]) for _, trick in tricks() if SHAPES[shape](trick)}
    assert found
    assert found == listed()[shape]


def test_every_listed_shape_is_known() -> None:
    """ODD_SHAPES.md names no shape that is not checked here."""
    assert listed().keys() == SHAPES.keys()
