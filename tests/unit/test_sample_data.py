"""The sample data is complete, and its rows are as odd as its README says."""

import re
from collections import Counter
from datetime import datetime

import pytest
from bson.objectid import ObjectId

from tests.support.sample import SAMPLE, TODAY, load, numbers, row, sample_files, strings, the_id

COUNTS = {
    "blog": 3,
    "bot_chats": 8,
    "categories": 7,
    "coaching": 32,
    "comments": 5,
    "companion_profiles": 4,
    "conversations": 5,
    "couch_videos": 14,
    "dm_messages": 9,
    "events": 14,
    "feed_posts": 7,
    "media_collections": 2,
    "media_library": 6,
    "riders": 9,
    "shops": 4,
    "spot_reviews": 16,
    "spot_trick_history": 5,
    "spotlists": 8,
    "spots": 27,
    "tricklists": 8,
    "tricks": 19,
    "users": 8,
}
REQUIRED = {
    "blog": "title author date content url",
    "bot_chats": "fromUserId toUserId type createdAt updatedAt",
    "categories": "name icon backgroundColor color",
    "coaching": "title text sport skillLevel topic",
    "comments": "postId userId content status createdAt",
    "companion_profiles": "userId companionId",
    "conversations": "participants lastMessage unreadCount createdAt updatedAt",
    "couch_videos": "type title description sportTypes tags releaseYear riders isPublished bunnyVideoId viewCount",
    "dm_messages": "conversationId senderId content type sharedContent status readAt createdAt",
    "events": "dedupeKey slug description status createdAt",
    "feed_posts": "userId mediaType caption sportTypes visibility status stats createdAt",
    "media_collections": "title mediaIds",
    "media_library": "type title description status sportTypes",
    "riders": "canonicalName aliases slug primarySport biography signatureTricks couchCredits reviewStatus",
    "shops": "slug name status location",
    "spot_reviews": "spotId userId rating content tags helpfulCount status createdAt updatedAt",
    "spot_trick_history": "spotId trickName skaterName source year userId verified upvotes upvotedBy",
    "spotlists": "name description userId spotIds trickIds isDefaultSaved createdAt updatedAt",
    "spots": "name latitude longitude rating tags sportTypes category parkType approvalStatus",
    "tricklists": "name user completed createdAt",
    "tricks": "name createdAt",
    "users": "name email network createdAt",
}


def test_every_collection_file_is_known() -> None:
    """No file is missing from the counts above, and none is counted that does not exist."""
    assert {path.stem for path in SAMPLE.glob("*.json")} == set(COUNTS)


@pytest.mark.parametrize("collection", sorted(COUNTS))
def test_collection_has_its_rows_and_required_fields(collection: str) -> None:
    """Each collection has the promised number of rows, ids by the scheme, and the fields readers rely on."""
    rows = load(collection)
    assert len(rows) == COUNTS[collection]
    assert numbers(collection, rows) == set(range(1, len(rows) + 1))
    for found in rows:
        assert [name for name in REQUIRED[collection].split() if name not in found] == []


def test_readme_counts_agree_with_the_files() -> None:
    """The README's table names every collection."""
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    assert [name for name in COUNTS if f"`{name}.json`" not in readme] == []


def test_urls_and_addresses_stay_on_example_hosts() -> None:
    """No URL and no e-mail address points at a host somebody could own."""
    allowed = re.compile(r"(?:[a-z0-9-]+\.)*example\.(?:com|org)")
    for path in sample_files():
        text = path.read_text(encoding="utf-8")
        hosts = re.findall(r"(?:https?:)?//([A-Za-z0-9.-]+\.[A-Za-z]{2,})", text)
        hosts += re.findall(r"[A-Za-z0-9._-]+@([A-Za-z0-9.-]+\.[A-Za-z]{2,})", text)
        hosts += re.findall(r"\bwww\.[A-Za-z0-9.-]+", text)
        assert [host for host in hosts if not allowed.fullmatch(host)] == [], path.name


def test_coaching_covers_sports_levels_and_statuses() -> None:
    """Tips exist for the seven trick sports and skiing, at each level, with the promised statuses."""
    rows = load("coaching")
    assert {found["sport"] for found in rows} == {
        "skateboarding",
        "snowboarding",
        "bmx",
        "surfing",
        "longboarding",
        "rollerblading",
        "scooter",
        "skiing",
    }
    assert {found["skillLevel"] for found in rows} == {"beginner", "intermediate", "advanced"}
    assert Counter(found.get("status") for found in rows) == {"published": 26, None: 4, "draft": 2}
    assert numbers("coaching", [found for found in rows if "status" not in found]) == {6, 15, 21, 27}
    assert numbers("coaching", [found for found in rows if found.get("status") == "draft"]) == {31, 32}
    assert all(90 <= len(found["text"].split()) <= 300 for found in rows)
    assert "50-50" in row("coaching", 5)["text"]
    assert "5-0 " in row("coaching", 5)["text"]


def test_spots_have_every_approval_status_and_shape() -> None:
    """Statuses, coordinates and the legacy fields of spots are as the README says."""
    rows = load("spots")
    by_status = {
        status: [found for found in rows if found["approvalStatus"] == status]
        for status in ("approved", "pending", "rejected", "private")
    }
    assert {status: len(found) for status, found in by_status.items()} == {
        "approved": 23,
        "pending": 2,
        "rejected": 1,
        "private": 1,
    }
    assert numbers("spots", by_status["pending"]) == {21, 24}
    assert all(isinstance(found["tags"], str) for found in rows)
    assert all(isinstance(found["latitude"], float) and isinstance(found["longitude"], float) for found in rows)
    assert numbers("spots", [found for found in rows if found["longitude"] > 179]) == {15, 16}
    assert numbers("spots", [found for found in rows if found["longitude"] < -179]) == {17, 18}
    assert any(found["latitude"] < -30 for found in rows)
    assert len({found["country"] for found in rows if "country" in found}) == 13
    assert numbers("spots", [found for found in rows if "userId" not in found]) == {14, 17, 25, 26, 27}
    assert all(isinstance(found["userId"], ObjectId) for found in rows if "userId" in found)
    assert numbers("spots", [found for found in rows if "reviewCount" not in found]) == {5, 14, 18, 24, 25, 26}
    assert {5, 14, 18, 24} <= numbers("spots", [found for found in rows if found["rating"] is None])
    assert numbers("spots", [found for found in rows if "googlePlaceData" in found]) == {3}
    assert numbers("spots", [found for found in rows if "location" in found and "type" in found]) == {26, 27}
    assert "city" not in row("spots", 26)
    assert row("spots", 26)["rating"] == 0
    assert "country" not in row("spots", 27)
    assert isinstance(row("spots", 12)["userPhotos"][0]["userId"], str)


def test_films_hide_what_must_be_hidden() -> None:
    """Twelve films are visible; one is unpublished, one is no film, one has no slug."""
    rows = load("couch_videos")
    visible = [found for found in rows if found["isPublished"] and found["type"] == "film"]
    assert len(visible) == 12
    assert numbers("couch_videos", [found for found in rows if not found["isPublished"]]) == {11}
    assert numbers("couch_videos", [found for found in rows if found["type"] != "film"]) == {12}
    assert numbers("couch_videos", [found for found in rows if "slug" not in found]) == {13}
    assert "importBatch" in row("couch_videos", 8)
    assert [found["status"] for found in load("media_library")].count("draft") == 1
    assert isinstance(row("media_library", 4)["releaseYear"], str)
    assert isinstance(row("media_library", 6)["createdAt"], str)


def test_events_have_every_kind_of_date() -> None:
    """Past, future, missing, empty, null and string dates all occur, and the old field names once."""
    assert "endAt" not in row("events", 3)
    assert row("events", 4)["endAt"] == ""
    assert row("events", 14)["startAt"] is None
    assert row("events", 14)["endAt"] is None
    assert isinstance(row("events", 11)["startAt"], str)
    assert isinstance(row("events", 12)["endAt"], str)
    assert {"name", "sportTypes", "startDate", "webUrl"} <= set(row("events", 13))
    assert "title" not in row("events", 13)
    starts = [found.get("startAt") for found in load("events")]
    dates = [start for start in starts if isinstance(start, datetime)]
    assert sum(date < TODAY for date in dates) == 2
    assert max(dates).year == 2031
    assert all(
        found["startAt"] > TODAY
        for found in load("events")
        if found["status"] == "scheduled" and isinstance(found.get("startAt"), datetime)
    )
    slugs = [found["slug"] for found in load("events")]
    assert len(set(slugs)) == len(slugs)


def test_riders_are_published_but_two() -> None:
    """Two athletes are not public, and one carries the older objects for signature tricks."""
    statuses = Counter(found["reviewStatus"] for found in load("riders"))
    assert statuses == {"published": 7, "reviewed": 1, "draft": 1}
    assert isinstance(row("riders", 3)["signatureTricks"][0], dict)


def test_users_have_the_awkward_shapes() -> None:
    """Bots, odd names, missing homies, plans, and an admin with an override."""
    rows = load("users")
    assert {found["botCharacter"] for found in rows if found.get("isBot")} == {"kaori", "wren"}
    assert isinstance(row("users", 3)["name"], dict)
    assert row("users", 6)["name"] == ""
    assert "homies" not in row("users", 4)
    assert "subscription" not in row("users", 4)
    assert row("users", 5)["subscription"]["status"] == "canceled"
    assert row("users", 6)["role"] == "admin"
    assert row("users", 6)["subscription"]["adminOverride"] == "free"
    assert isinstance(row("users", 6)["subscription"]["currentPeriodEnd"], str)
    assert {found["subscription"]["plan"] for found in rows if "subscription" in found} == {"free", "premium"}


def test_companion_profiles_differ_in_completeness() -> None:
    """One profile is whole, the others lack what their writer did not write."""
    assert {"relationshipStage", "traits", "memory", "greetingStyle"} <= set(row("companion_profiles", 1))
    assert "traits" not in row("companion_profiles", 2)
    assert "interactionCount" not in row("companion_profiles", 3)
    assert isinstance(row("companion_profiles", 4)["memory"]["knownFacts"], str)
    bots = [found["companionId"] for found in load("companion_profiles")]
    assert set(bots) == {the_id("users", 7), the_id("users", 8)}


def test_feed_posts_have_old_and_new_shapes() -> None:
    """Every visibility and status occurs; the two old posts have ObjectId owners and no links."""
    rows = load("feed_posts")
    assert {found["visibility"] for found in rows} == {"public", "homies", "private"}
    assert {found["status"] for found in rows} == {"published", "processing"}
    old = [found for found in rows if isinstance(found["userId"], ObjectId)]
    assert numbers("feed_posts", old) == {5, 6}
    assert all("spotId" not in found and "trickIds" not in found for found in old)
    assert any("surf" in found["sportTypes"] for found in rows)


def test_chats_have_their_odd_rows() -> None:
    """A silent legacy turn, cards, a doubled conversation, a shared message and an unanswered request exist."""
    assert "message" not in row("bot_chats", 1)
    assert [card["type"] for turn in load("bot_chats") for card in turn.get("richContent", [])] == [
        "spot_card",
        "video_card",
    ]
    assert all(found["createdAt"] == found["updatedAt"] for found in load("bot_chats"))
    assert all(("userId" in found) == (found["type"] == "user") for found in load("bot_chats"))
    pair = [set(row("conversations", number)["participants"]) for number in (1, 2)]
    assert pair[0] == pair[1]
    assert row("conversations", 2)["updatedAt"] > row("conversations", 1)["updatedAt"]
    assert row("conversations", 5)["lastMessage"] is None
    assert row("dm_messages", 6)["content"] is None
    assert all(len(found) == 9 for found in load("dm_messages"))


def test_small_collections_have_their_odd_rows() -> None:
    """Colours may be null, shops have points, and blog dates come as words, numbers and short dates."""
    assert row("categories", 7)["color"] is None
    assert all(found["location"]["type"] == "Point" for found in load("shops"))
    assert [found["status"] for found in load("shops")].count("draft") == 1
    assert [type(found["date"]) is str for found in load("blog")] == [True, False, True]
    assert row("blog", 2)["url"] == row("blog", 3)["url"]
    assert re.search(r"@@https://\S+@@", row("blog", 1)["content"])


def test_dates_of_new_rows_are_dates() -> None:
    """`createdAt` is a BSON date wherever the README does not say otherwise."""
    for collection in COUNTS:
        odd = [found for found in load(collection) if not isinstance(found.get("createdAt", TODAY), datetime)]
        assert numbers(collection, odd) == ({6} if collection == "media_library" else set()), collection


def test_no_sample_text_is_blank_where_people_read_it() -> None:
    """Titles, names and texts that are shown to riders hold more than white space."""
    for collection in ("coaching", "couch_videos", "riders", "blog"):
        for found in load(collection):
            assert [text for text in strings({**found, "images": [], "aliases": []}) if not text.strip()] == []
