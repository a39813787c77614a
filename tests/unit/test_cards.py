"""The rules of rich content: numbers are numbers, ids text, nothing null, nothing twice, never too many."""

import json
from typing import Any, Final

import pytest
from bson import Decimal128, Int64, ObjectId
from hypothesis import given
from hypothesis import strategies as st

from brain import cards
from brain.tool import Card

ID: Final = "64b000000000000000000001"
IMAGE: Final = "https://cdn.example/a.jpg"


def data(card: Card | None) -> dict[str, Any]:
    """The data of a card as the app gets it: through JSON."""
    assert card is not None
    return json.loads(json.dumps(card.data, allow_nan=False))


def test_each_card_has_the_fields_that_the_app_reads() -> None:
    """Every field of each type, under the app's names."""
    spot = cards.spot_card(
        ObjectId(ID), "Plaza", category="park", rating=4.5, review_count=Int64(3), city="Boise", state="ID",
        image_url=IMAGE,
    )  # fmt: skip
    found = [
        cards.video_card(ID, "Film", thumbnail_url=IMAGE, produced_by="Us", release_year=2024, sport_types=["bmx"]),
        cards.trick_card(ID, "Ollie", difficulty="Beginner", description="Pop.", image_url=IMAGE),
        spot,
        cards.spots_list([spot], title="Near you"),
        cards.tricklist_card(ID, "Summer", trick_count=8, landed=2, difficulty="Beginner"),
    ]
    assert [(card.type, data(card)) for card in found if card is not None] == [
        (
            "video_card",
            {
                "_id": ID, "title": "Film", "thumbnailUrl": IMAGE, "producedBy": "Us", "releaseYear": 2024,
                "sportTypes": ["bmx"],
            },
        ),
        (
            "trick_card",
            {"_id": ID, "name": "Ollie", "difficulty": "Beginner", "description": "Pop.", "imageUrl": IMAGE},
        ),
        (
            "spot_card",
            {
                "_id": ID, "name": "Plaza", "category": "park", "rating": 4.5, "reviewCount": 3,
                "address": "Boise, ID", "imageUrl": IMAGE,
            },
        ),
        (
            "spots_list",
            {
                "title": "Near you",
                "spots": [{"_id": ID, "name": "Plaza", "imageUrl": IMAGE, "rating": 4.5, "category": "park"}],
            },
        ),
        (
            "tricklist_card",
            {"_id": ID, "name": "Summer", "trickCount": 8, "progress": 25, "difficulty": "Beginner"},
        ),
    ]  # fmt: skip


def test_what_is_unknown_is_left_out() -> None:
    """An unknown value has no key; an empty list has no progress."""
    assert data(cards.spot_card(ID, "Plaza", city="", state="ID")) == {"_id": ID, "name": "Plaza", "address": "ID"}
    assert data(cards.tricklist_card(ID, "Empty", trick_count=0, landed=0)) == {
        "_id": ID, "name": "Empty", "trickCount": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (4, 4),
        (4.25, 4.25),
        (Int64(5), 5),
        (Decimal128("3.5"), 3.5),
        ("4.5", None),
        (True, None),
        (float("nan"), None),
        (Decimal128("sNaN"), None),
        (Decimal128("Infinity"), None),
        (10**400, None),
        (-1, None),
        (6, None),
        (None, None),
    ],
)
def test_a_rating_is_a_number_or_absent(stored: object, shown: float | None) -> None:
    """The app calls a number method on it: a text would crash it."""
    rating = data(cards.spot_card(ID, "Plaza", rating=stored)).get("rating")
    assert rating == shown
    assert rating is None or type(rating) in (int, float)


@pytest.mark.parametrize(
    "url", ["http://a.example/x", "javascript:alert(1)", "https://a b", "https://a\n", 5, None, ""]
)
def test_an_image_is_an_https_address(url: object) -> None:
    """Anything else is left out."""
    assert "imageUrl" not in data(cards.trick_card(ID, "Ollie", image_url=url))


@pytest.mark.parametrize("identity", [None, "", "  ", 7, {"$oid": ID}])
def test_without_an_id_there_is_no_card(identity: object) -> None:
    """Nothing to tap on, nothing to show."""
    assert cards.trick_card(identity, "Ollie") is None
    assert cards.spots_list([cards.spot_card(identity, "Plaza")]) is None


def test_at_most_four_of_a_type_and_six_in_all_and_none_twice() -> None:
    """The first ones stay."""
    tricks = [Card("trick_card", {"_id": str(n), "name": "t"}) for n in (1, 1, 2, 3, 4, 5, 6)]
    spots = [Card("spot_card", {"_id": str(n), "name": "s"}) for n in range(1, 6)]
    found = cards.shown([*tricks, *spots], cards.CARD_TYPES)
    assert [(card.type, card.data["_id"]) for card in found] == [
        *(("trick_card", str(n)) for n in (1, 2, 3, 4)),
        *(("spot_card", str(n)) for n in (1, 2)),
    ]


def test_only_declared_types_and_only_cards_with_an_id() -> None:
    """Also for cards that no builder made."""
    offered = [
        Card("spots_list", {"spots": [{"_id": "1"}]}),
        Card("spots_list", {"spots": [{"_id": "1"}]}),
        Card("spots_list", {"spots": []}),
        Card("trick_card", {"_id": "1"}),
        Card("trick_card", {"name": "no id"}),
        Card("trick_card", {"_id": 5}),
    ]
    assert cards.shown(offered, {"spots_list", "trick_card"}) == (offered[0], offered[3])
    assert cards.shown(offered, ()) == ()
    assert cards.rich_content(offered[3:4]) == [{"type": "trick_card", "data": {"_id": "1"}}]


ANYTHING: Final = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.lists(st.text(), max_size=3)
)


@given(st.lists(ANYTHING, min_size=8, max_size=8))
def test_whatever_is_stored_the_app_can_read_the_card(stored: list[Any]) -> None:
    """No value of the database breaks the hard rules."""
    a, b, c, d, e, f, g, h = stored
    built = [
        cards.video_card(a, b, thumbnail_url=c, produced_by=d, release_year=e, sport_types=f),
        cards.trick_card(a, b, difficulty=c, description=d, image_url=e),
        cards.spot_card(a, b, category=c, rating=d, review_count=e, city=f, state=g, image_url=h),
        cards.tricklist_card(a, b, trick_count=c, landed=d, difficulty=e),
    ]
    for card in built:
        if card is None:
            continue
        found = data(card)
        assert None not in found.values()
        assert isinstance(found["_id"], str)
        for number in ("rating", "progress", "reviewCount", "trickCount", "releaseYear"):
            assert number not in found or type(found[number]) in (int, float)
