"""Tricks: the text, the links, the neighbours, the split by field."""

from pathlib import Path
from typing import Any, cast

import pytest
from bson import ObjectId, json_util

from brain.knowledge.domain.fields import ODDITIES
from brain.knowledge.domain.progression import MOST_EDGES
from brain.knowledge.pin import MINILM, OPENAI_SMALL
from brain.knowledge.tokens import counter_for
from tests.support.words import NOW, words
from worker.model import DocKey, Document
from worker.sources.source import Setting
from worker.sources.trickipedia import Trickipedia

SAMPLE = Path(__file__).parents[2] / "deploy" / "sample" / "trickipedia"
TRICKS = Trickipedia()


def edge(target: object, status: str = "published", **more: object) -> dict[str, object]:
    """An edge of the progression."""
    return {"trickId": target, "research": {"status": status}, **more}


OLLIE, SHUVIT, DRAFT, GONE = (ObjectId(f"5a00000000000000000000{number:02}") for number in (1, 2, 3, 4))
KICKFLIP: Document = {
    "_id": ObjectId("5a0000000000000000000010"),
    "name": "Kickflip",
    "category": "Skateboarding",
    "difficulty": "Intermediate",
    "url": "kickflip",
    "description": "The board spins once along its length.",
    "steps": ["Pop the tail.", {"text": "Flick off the corner."}],
    "tips": "Flick up, not out.",
    "commonMistakes": ["Kicking down."],
    "safety": ["Wear a helmet."],
    "aliases": ["magic flip"],
    "progression": {
        "prerequisites": [
            edge(SHUVIT, order=2),
            edge(str(OLLIE), "reviewed", order=1, strength="required", reason="Same pop."),
            edge(DRAFT, "draft"),
            edge(GONE),
        ],
        "nextSteps": [edge(SHUVIT)],
    },
}
NEIGHBOURS: dict[DocKey, Document] = {
    DocKey.of("trickipedia", OLLIE): {"_id": OLLIE, "name": "Ollie", "category": "Skateboarding"},
    DocKey.of("trickipedia", SHUVIT): {"_id": SHUVIT, "name": "Shuvit", "category": "Longboarding"},
}


def test_the_whole_text() -> None:
    """One chunk: the name first, then every field, neighbours by their current names."""
    (part,) = TRICKS.shape(KICKFLIP, words(neighbours=NEIGHBOURS)).parts
    assert part.name == "full"
    assert part.text == (
        "Kickflip\n\n"
        "The board spins once along its length.\n\n"
        "Steps:\n1. Pop the tail.\n2. Flick off the corner.\n\n"
        "Tips:\n- Flick up, not out.\n\n"
        "Common mistakes:\n- Kicking down.\n\n"
        "Safety:\n- Wear a helmet.\n\n"
        "Also known as:\nmagic flip\n\n"
        "Learn these first:\n- Ollie (required): Same pop.\n- Shuvit\n\n"
        "Next steps after it:\n- Shuvit"
    )
    assert part.metadata.as_fields() == {
        "docType": "trick",
        "title": "Kickflip",
        "sport": "skateboarding",
        "url": "/trickipedia/skateboarding/kickflip",
        "trickName": "Kickflip",
        "trickId": "5a0000000000000000000010",
        "difficulty": "Intermediate",
    }


def test_refs_are_the_shown_edges_existing_or_not() -> None:
    """A neighbour that does not exist yet must refresh this text when it comes; a draft edge refers to nothing."""
    refs = TRICKS.shape(KICKFLIP, words()).refs
    assert [ref.raw for ref in refs] == [OLLIE, SHUVIT, GONE]
    assert list(refs) == TRICKS.neighbours(KICKFLIP)


def test_the_face_changes_with_the_name_only() -> None:
    """What other texts say of a trick."""
    face = TRICKS.shape(KICKFLIP, words()).face
    other: Document = {"steps": [], "updatedAt": 1, "category": "Surfing", "url": "x", "difficulty": "Easy"}
    assert TRICKS.shape({**KICKFLIP, **other}, words()).face == face
    assert TRICKS.shape({**KICKFLIP, "name": "other"}, words()).face != face


@pytest.mark.parametrize("change", [{"category": "Surfing"}, {"difficulty": "Easy"}, {"url": "other"}, {"url": None}])
def test_sport_difficulty_and_link_are_metadata_alone(change: Document) -> None:
    """A change of one of them rewrites metadata and changes no text."""
    (before,) = TRICKS.shape(KICKFLIP, words(neighbours=NEIGHBOURS)).parts
    (after,) = TRICKS.shape({**KICKFLIP, **change}, words(neighbours=NEIGHBOURS)).parts
    assert before.text == after.text
    assert before.metadata != after.metadata


@pytest.mark.parametrize(
    ("category", "sport", "url"),
    [
        ("Inline Skating", "rollerblading", "/trickipedia/inline-skating/kickflip"),
        ("BMX", "bmx", "/trickipedia/bmx/kickflip"),
        ("Skiing", "skiing", None),
        ("Flatground", "flatground", None),
        (None, None, None),
    ],
)
def test_sport_and_link(category: object, sport: str | None, url: str | None) -> None:
    """The site's slug of each sport; no page, no link."""
    metadata = TRICKS.shape({**KICKFLIP, "category": category}, words()).parts[0].metadata
    assert (metadata.sport, metadata.url) == (sport, url)


@pytest.mark.parametrize("slug", [None, "", 5, "a/b", "../x", "a b"])
def test_no_guess_about_a_missing_slug(slug: object) -> None:
    """A slug that cannot stand in a path gives no link."""
    assert TRICKS.shape({**KICKFLIP, "url": slug}, words()).parts[0].metadata.url is None


def test_a_long_trick_is_split_by_field_with_its_name_on_every_part() -> None:
    """Fields are the borders, a small field joins the one before it, names are those of the fields."""
    steps = [f"Step {number} needs some twelve words so that a part is full soon." for number in range(40)]
    shaped = TRICKS.shape({**KICKFLIP, "steps": steps}, words(limit=256, neighbours=NEIGHBOURS))
    assert [part.name for part in shaped.parts] == ["description", "steps", "steps-2", "steps-3", "tips"]
    assert all(part.text.startswith("Kickflip") for part in shaped.parts)
    assert shaped.parts[-1].text.endswith("- Shuvit")
    before = {part.name: part.text for part in shaped.parts}
    edited = TRICKS.shape(
        {**KICKFLIP, "steps": steps, "description": "Other."}, words(limit=256, neighbours=NEIGHBOURS)
    )
    assert {part.name for part in edited.parts if before.get(part.name) != part.text} == {"description"}


def test_a_trick_without_a_name_still_helps_and_an_empty_one_says_nothing() -> None:
    """Odd rows are made the best of."""
    shaped = TRICKS.shape({"_id": 5, "description": "Jump."}, words())
    assert shaped.parts[0].text == "A trick\n\nJump."
    assert shaped.parts[0].metadata.extra["trickId"] is None
    assert "no_title" in shaped.oddities
    assert TRICKS.shape({"_id": 5}, words()).parts == ()
    assert TRICKS.shape({"_id": 5, "name": "Boneless"}, words()).parts[0].text == "Boneless"


def test_edges_are_bounded_and_odd_ones_counted() -> None:
    """A trick with 100,000 edges names MOST_EDGES of them."""
    many = [edge(ObjectId(f"{number:024x}"), order="first") for number in range(1000)]
    document = {**KICKFLIP, "progression": {"prerequisites": [*many, edge(None), "x", edge(KICKFLIP["_id"])]}}
    shaped = TRICKS.shape(document, words())
    assert len(shaped.refs) == MOST_EDGES
    assert {"too_many_edges", "bad_edge", "wrong_type"} <= set(shaped.oddities)


@pytest.mark.parametrize(("model", "limit"), [(MINILM, 256), (OPENAI_SMALL, 512)])
def test_the_sample_catalogue(model: Any, limit: int) -> None:  # noqa: ANN401 - a Model
    """Every sample trick, odd shapes included, with the real tokenizers."""
    if not SAMPLE.is_dir():
        pytest.skip("deploy/sample is absent")
    rows = [
        row
        for file in sorted(SAMPLE.glob("*.json"))
        for row in cast("list[Document]", json_util.loads(file.read_text("utf-8")))
    ]
    known = {DocKey.of("trickipedia", row["_id"]): row for row in rows}
    setting = Setting(NOW, counter_for(model), limit, known)
    for row in rows:
        shaped = TRICKS.shape(row, setting)
        assert shaped.parts, row["_id"]
        assert set(shaped.oddities) <= set(ODDITIES)
        for part in shaped.parts:
            assert setting.tokens.count(part.text) <= limit
            assert part.text.startswith(str(row["name"]).split()[0])
            assert part.metadata.url is None or part.metadata.url.startswith("/trickipedia/")
