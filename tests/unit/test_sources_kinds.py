"""Coaching, films, spots, events and riders: who is visible, what is told, where it links."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from bson import ObjectId, json_util

from tests.support.words import NOW, words
from worker.model import Document, Shaped
from worker.sources.registry import SOURCES

SAMPLE = Path(__file__).parents[2] / "deploy" / "sample"
HEX = "300000000000000000000001"

COACHING: Document = {"title": "Stand still", "text": "Wobble first.", "sport": "Skate", "skillLevel": "beginner"}
FILM: Document = {
    "_id": ObjectId(HEX),
    "slug": "concrete-postcards",
    "type": "film",
    "isPublished": True,
    "title": "Concrete Postcards",
    "description": "Eleven cities.",
    "sportTypes": ["skateboarding"],
    "releaseYear": 2025,
    "producedBy": "Lowlight",
    "riders": ["Nadia", "Theo"],
    "bunnyVideoId": "internal-1",
    "hlsUrl": "https://stream.example.com/internal-2",
    "driveFileId": "internal-3",
    "viewCount": 17,
}
SPOT: Document = {
    "_id": ObjectId(HEX),
    "name": "Burnside Yard",
    "approvalStatus": "approved",
    "city": "Buffalo",
    "state": "New York",
    "country": "USA",
    "sportTypes": ["skateboarding", "bmx"],
    "category": "park",
    "parkType": "skatepark",
    "tags": "bowl, covered , ",
    "description": "Two bowls.",
    "rating": 4.5,
    "userId": ObjectId("100000000000000000000001"),
}
EVENT: Document = {
    "slug": "plaza-jam",
    "title": "Plaza Jam",
    "sports": ["BMX"],
    "startAt": datetime(2027, 2, 21, 3, tzinfo=UTC),
    "endAt": datetime(2027, 2, 21, 6, tzinfo=UTC),
    "timezone": "America/Los_Angeles",
    "status": "scheduled",
    "venue": {"name": "Hangar", "city": "Oakland"},
    "participation": {"registrationStatus": "open"},
}
RIDER: Document = {
    "canonicalName": "Nadia Ferreira",
    "slug": "nadia",
    "reviewStatus": "published",
    "primarySport": "skateboarding",
    "signatureTricks": ["Kickflip", {"name": "Method", "note": "the quiet one"}],
    "biography": "Long lines.",
}


def shape(collection: str, document: Document) -> Shaped:
    """What the source of this collection says of a document."""
    return SOURCES[collection].shape(document, words())


TOLD = {
    "coaching": "Stand still\n\nWobble first.",
    "couch_videos": """Concrete Postcards (film, 2025)

Made by: Lowlight
Riders: Nadia, Theo

Eleven cities.""",
    "spots": """Burnside Yard (Buffalo, New York, USA)

Skatepark in Buffalo, New York, USA
Sports: skateboarding, bmx
Features: bowl, covered

Two bowls.""",
    "events": """Plaza Jam (event)

When: 20 February 2027, 19:00 (America/Los_Angeles) to 20 February 2027, 22:00 (America/Los_Angeles)
Where: Hangar, Oakland
Registration: open""",
    "riders": """Nadia Ferreira (rider)

Signature tricks: Kickflip, Method

Long lines.""",
}


@pytest.mark.parametrize(
    ("collection", "document", "url"),
    [
        ("coaching", COACHING, None),
        ("couch_videos", FILM, "/media/couch/concrete-postcards"),
        ("spots", SPOT, f"/spots/new%20york/burnside-yard?id={HEX}"),
        ("events", EVENT, "/events/plaza-jam"),
        ("riders", RIDER, "/riders/nadia"),
    ],
)
def test_text_and_link(collection: str, document: Document, url: str | None) -> None:
    """The facts a rider asks for, nothing internal, and the link that works."""
    (part,) = shape(collection, document).parts
    assert part.name == "full"
    assert part.text == TOLD[collection]
    assert part.metadata.url == url


@pytest.mark.parametrize(
    ("collection", "document", "hiding"),
    [
        ("coaching", COACHING, {"status": "draft"}),
        ("coaching", COACHING, {"status": 1}),
        ("couch_videos", FILM, {"isPublished": False}),
        ("couch_videos", FILM, {"isPublished": "true"}),
        ("couch_videos", FILM, {"type": "clip"}),
        ("spots", SPOT, {"approvalStatus": "pending"}),
        ("spots", SPOT, {"approvalStatus": None}),
        ("spots", SPOT, {"approvalStatus": ["approved"]}),
        ("events", EVENT, {"endAt": NOW}),
        ("events", EVENT, {"status": "Completed"}),
        ("events", EVENT, {"startAt": None, "endAt": ""}),
        ("riders", RIDER, {"reviewStatus": "reviewed"}),
    ],
)
def test_hidden(collection: str, document: Document, hiding: Document) -> None:
    """A hidden document says nothing at all."""
    assert shape(collection, document).parts
    hidden = shape(collection, {**document, **hiding})
    assert hidden.parts == ()
    assert hidden.expires_at is None


def test_coaching_without_a_status_is_visible() -> None:
    """Missing, null and published are one."""
    for status in ({}, {"status": None}, {"status": "published"}):
        (part,) = shape("coaching", {**COACHING, **status}).parts
        assert part.metadata.as_fields() == {
            "docType": "coaching",
            "title": "Stand still",
            "sport": "skateboarding",
            "url": None,
            "skillLevel": "beginner",
            "topic": None,
        }


def test_an_event_expires_at_its_end_else_at_its_start() -> None:
    """The moment from which it is no longer upcoming."""
    assert shape("events", EVENT).expires_at == EVENT["endAt"]
    assert shape("events", {**EVENT, "endAt": ""}).expires_at == EVENT["startAt"]
    soon = (NOW + timedelta(seconds=1)).isoformat()
    assert shape("events", {**EVENT, "endAt": soon}).expires_at == NOW + timedelta(seconds=1)


@pytest.mark.parametrize("zone", ["Nowhere/Land", "", "America", "../../etc/passwd", 5, None, "\x00"])
def test_an_unknown_time_zone_is_utc(zone: object) -> None:
    """No name of a zone raises."""
    assert "21 February 2027, 03:00 (UTC)" in shape("events", {**EVENT, "timezone": zone}).parts[0].text


@pytest.mark.parametrize(
    ("fields", "visible"),
    [
        ({"endAt": NOW + timedelta(seconds=1), "startAt": NOW - timedelta(days=9)}, True),
        ({"endAt": NOW - timedelta(seconds=1), "startAt": NOW + timedelta(days=9)}, False),
        ({"endAt": None, "startAt": NOW + timedelta(seconds=1)}, True),
        ({"endAt": None, "startAt": NOW}, False),
        ({"endAt": "", "startAt": (NOW + timedelta(hours=1)).isoformat()}, True),
        ({"endAt": "soon", "startAt": NOW + timedelta(hours=1)}, True),
        ({"endAt": "2026-11-30T08:00:00-05:00", "startAt": None}, True),
        ({"endAt": "2026-11-30T13:00:00+02:00", "startAt": None}, False),
        ({"endAt": (NOW + timedelta(hours=1)).replace(tzinfo=None)}, True),
    ],
)
def test_upcoming_means_the_end_else_the_start(fields: Document, *, visible: bool) -> None:
    """An end that is missing, empty or unreadable leaves it to the start; zones count."""
    assert bool(shape("events", {**EVENT, **fields}).parts) is visible


@pytest.mark.parametrize(
    ("zone", "start", "tba", "told"),
    [
        ("America/Los_Angeles", datetime(2027, 2, 21, 3, tzinfo=UTC), False, "20 February 2027, 19:00"),
        ("Pacific/Auckland", datetime(2027, 2, 21, 12, tzinfo=UTC), False, "22 February 2027, 01:00"),
        ("America/Los_Angeles", datetime(2027, 2, 21, 3, tzinfo=UTC), True, "20 February 2027"),
        ("America/Los_Angeles", datetime(2027, 2, 21, tzinfo=UTC), True, "21 February 2027"),
    ],
)
def test_days_are_told_in_the_events_own_zone(zone: str, start: datetime, told: str, *, tba: bool) -> None:
    """An evening in Los Angeles is not the next day; a day without a time is that day everywhere."""
    (part,) = shape("events", {**EVENT, "startAt": start, "endAt": None, "timezone": zone, "timeTba": tba}).parts
    assert f"When: {told}" in part.text
    assert ("19:00" in part.text or "01:00" in part.text) is not tba


def test_no_link_is_guessed() -> None:
    """A missing part means no link; a film without slug links by id, a spot without state as the site does."""
    assert shape("couch_videos", {**FILM, "slug": None}).parts[0].metadata.url == f"/media/couch/{HEX}"
    assert shape("couch_videos", {**FILM, "slug": None, "_id": 5}).parts[0].metadata.url is None
    assert shape("spots", {**SPOT, "state": None}).parts[0].metadata.url == f"/spots/unknown/burnside-yard?id={HEX}"
    assert shape("spots", {**SPOT, "name": "滑板"}).parts[0].metadata.url is None
    assert shape("spots", {**SPOT, "_id": 5}).parts[0].metadata.url is None
    assert shape("events", {**EVENT, "slug": ""}).parts[0].metadata.url is None
    assert shape("riders", {**RIDER, "slug": 7}).parts[0].metadata.url is None


def test_what_changes_without_meaning_changes_nothing() -> None:
    """Counters, ratings and bookkeeping dates are not read."""
    noisy = {"viewCount": 99, "rating": 1, "reviewCount": 5, "updatedAt": NOW, "lastSeenAt": NOW, "googlePhotos": ["x"]}
    for collection, document in (("couch_videos", FILM), ("spots", SPOT), ("events", EVENT)):
        assert shape(collection, {**document, **noisy}) == shape(collection, document)


def test_a_sport_alone_is_metadata_and_several_are_told() -> None:
    """Another sport changes no text; with a second one the text must say what the metadata cannot hold."""
    for collection, document, field in (
        ("couch_videos", FILM, "sportTypes"),
        ("events", EVENT, "sports"),
        ("riders", RIDER, "primarySport"),
        ("spots", {**SPOT, "sportTypes": ["surf"]}, "sportTypes"),
    ):
        (one,), (other,) = (
            shape(collection, {**document, field: [sport]}).parts for sport in ("BMX", "Inline Skating")
        )
        assert one.text == other.text
        assert (one.metadata.sport, other.metadata.sport) == ("bmx", "rollerblading")
        (both,) = shape(collection, {**document, field: ["BMX", "surf"]}).parts
        assert "Sports: bmx, surfing" in both.text
        assert both.metadata.sport == "bmx"


def test_the_registry_names_every_kind() -> None:
    """Each collection has one source."""
    assert list(SOURCES) == ["trickipedia", "docs", "coaching", "couch_videos", "spots", "events", "riders"]


def test_the_sample_data() -> None:
    """Every sample row of these kinds: metadata of JSON's types, nothing internal in any text."""
    for collection in ("coaching", "couch_videos", "spots", "events", "riders"):
        file = SAMPLE / f"{collection}.json"
        if not file.is_file():
            pytest.skip("deploy/sample is absent")
        visible = 0
        for row in cast("list[Document]", json_util.loads(file.read_text("utf-8"))):
            for part in shape(collection, row).parts:
                visible += 1
                assert json.loads(json.dumps(part.metadata.as_fields()))
                assert "internal" not in part.text
                assert "stream.example.com" not in part.text
        assert visible, collection
