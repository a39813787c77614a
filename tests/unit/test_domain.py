"""The rules of TrickBook's data that the worker and the tools share: ids and owners, statuses, names, links."""

import re
from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from bson import DBRef, ObjectId

from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import both_forms, object_id, owner_queries, owns, same_id
from brain.knowledge.domain.links import trick_path
from brain.knowledge.domain.names import LONGEST_PATTERN, contains, name_key
from brain.knowledge.domain.progression import edges
from brain.knowledge.domain.statuses import Written, progress
from brain.knowledge.domain.visibility import event_is_upcoming
from brain.knowledge.sports import known_sport, spellings

MIKA = "100000000000000000000001"
JUNO = "100000000000000000000002"
SHAPES = [
    DBRef("users", MIKA),
    DBRef("users", ObjectId(MIKA)),
    {"$ref": "users", "$id": MIKA},
    {"$id": {"$oid": MIKA}},
    ObjectId(MIKA),
    MIKA,
]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_every_owner_shape_is_compared_after_coercion(shape: object) -> None:
    """The Node helper's rule: a DBRef that holds a string equals the ObjectId of the same hex."""
    assert owns(MIKA, {"user": shape})
    assert owns(MIKA, {"userId": shape})
    assert owns(MIKA, {"user": None, "userId": shape})
    assert not owns(JUNO, {"user": shape})
    assert same_id(shape, MIKA)


@pytest.mark.parametrize("row", [{}, {"user": None}, {"user": {}}, {"user": 5}, {"user": True}, {"user": []}])
def test_a_row_whose_owner_cannot_be_read_is_nobodys(row: dict[str, object]) -> None:
    """Deny by default; an empty user id owns nothing either."""
    assert not owns(MIKA, row)
    assert not owns("", row)
    assert not owns("None", row)


def test_an_unreadable_user_is_not_rescued_by_the_legacy_field() -> None:
    """`user` decides where it stands; `userId` speaks only for rows without it."""
    assert not owns(MIKA, {"user": {"$ref": "users"}, "userId": MIKA})
    assert not owns(MIKA, {"user": JUNO, "userId": MIKA})


def test_the_owner_is_asked_for_in_every_form() -> None:
    """String and ObjectId, in a reference, by itself, and in the legacy field."""
    string, hex_ = MIKA, ObjectId(MIKA)
    inside, whole, legacy = owner_queries(MIKA)
    assert inside == {"user.$id": {"$in": [string, hex_]}}
    assert whole == {"user": {"$in": [DBRef("users", string), DBRef("users", hex_), string, hex_]}}
    assert legacy == {"userId": {"$in": [string, hex_]}}
    assert both_forms("not-hex") == ["not-hex"]


@pytest.mark.parametrize("value", ["", "zzz", "1" * 23, "1" * 10_000, None, 5, {"$gt": ""}, [], b"1" * 12])
def test_a_malformed_id_is_no_id_and_no_exception(value: object) -> None:
    """A malformed `list_id` made the Node constructor throw."""
    assert object_id(value) is None


@pytest.mark.parametrize(
    ("stored", "means"),
    [
        ("To Do", "not_started"),
        (None, "not_started"),
        (False, "not_started"),
        ("Not Started", "not_started"),
        ("Learning", "learning"),
        ("Completed", "landed"),
        ("completed", "landed"),
        ("Complete", "landed"),
        ("Landed", "landed"),
        ("Mastered", "landed"),
        (" MASTERED ", "landed"),
        (True, "landed"),
        (1, "not_started"),
        ({"$ne": 1}, "not_started"),
        ("incomplete", "not_started"),
    ],
)
def test_every_spelling_of_a_status(stored: object, means: str) -> None:
    """Each that was seen in the data, and some that were not."""
    assert progress(stored) == means


def test_what_a_companion_writes_is_read_back() -> None:
    """Complete is landed, To Do is not started."""
    assert [progress(word) for word in get_args(Written)] == ["landed", "not_started"]


@pytest.mark.parametrize(
    "text", ["c++ (switch)", "50-50 (switch", "Tre Flip (360 Flip)", "a.b*c", "$^[x]", "ü\\Q", "("]
)
def test_a_pattern_is_the_text_and_nothing_else(text: str) -> None:
    """Regex injection and crash: the pattern compiles and matches exactly that text."""
    made = contains(text)
    assert re.search(made["$regex"], f"xx{text.upper()}xx", re.IGNORECASE)
    assert not re.search(made["$regex"], "anything else", re.IGNORECASE)


@pytest.mark.parametrize("text", ["", " ", "\n", "\u200b", "\x00", "\ud800"])
def test_nothing_is_no_pattern(text: str) -> None:
    """It would match everything."""
    with pytest.raises(ValueError, match="everything"):
        contains(text)


def test_a_pattern_has_no_nul_and_a_bounded_length() -> None:
    """BSON patterns end at NUL, and the server refuses long ones."""
    assert "\x00" not in contains("a\x00b")["$regex"]
    assert len(contains("(" * 10_000)["$regex"]) == 2 * LONGEST_PATTERN


def test_names_that_are_the_same() -> None:
    """Dashes, blanks, case and brackets do not make another trick; digits and signs do."""
    assert name_key("50-50 (Switch)") == name_key(" 50 50  switch") == name_key("50\u201350 SWITCH")
    assert name_key("5-0") != name_key("50")
    assert name_key("c++") != name_key("c")
    assert name_key("???") == "???"
    assert name_key("   ") == ""


def test_category_hints_are_sports_or_nothing() -> None:
    """The hints of the tool description ("flatground", "rail") can never match a stored category."""
    assert known_sport("Inline Skating") == known_sport("rollerblade") == "rollerblading"
    assert known_sport("surf") == "surfing"
    assert known_sport("flatground") is known_sport("rail") is known_sport("") is None
    assert "surf" in spellings("surfing")
    assert spellings("rollerblading")[0] == "rollerblading"


def test_links_lack_no_part() -> None:
    """A category without a page and a missing slug give no link rather than a guess."""
    assert trick_path(Fields({"category": " Inline Skating ", "url": "soul-grind"})) == (
        "/trickipedia/inline-skating/soul-grind"
    )
    assert trick_path(Fields({"category": "Wakeboarding", "url": "raley"})) is None
    assert trick_path(Fields({"category": "BMX"})) is None


def test_only_reviewed_and_published_edges_exist() -> None:
    """Draft, disputed and rejected ones do not, nor the trick itself."""
    one, own = ObjectId(), ObjectId()
    listed = [
        {"trickId": one, "research": {"status": status}} for status in ("draft", "disputed", "rejected", None, 5)
    ] + [
        {"trickId": own, "research": {"status": "published"}},
        {"trickId": str(one), "research": {"status": "Reviewed"}},
    ]
    found = edges(Fields({"_id": own, "progression": {"nextSteps": listed}}), "nextSteps")
    assert [edge.target for edge in found] == [one]


def test_upcoming_goes_by_the_end() -> None:
    """`endAt` in the future, or none and `startAt` in the future; a status that says over wins."""
    now = datetime(2026, 11, 30, tzinfo=UTC)
    day = timedelta(days=1)
    assert event_is_upcoming({"startAt": now - day, "endAt": now + day}, now)
    assert event_is_upcoming({"startAt": now + day, "endAt": ""}, now)
    assert not event_is_upcoming({"startAt": now + day, "endAt": now - day}, now)
    assert not event_is_upcoming({"startAt": now + day, "status": "Cancelled"}, now)
    assert not event_is_upcoming({}, now)
