"""The sample data is complete, consistent with itself, and as odd as its README says."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
import yaml
from bson import json_util
from bson.dbref import DBRef
from bson.objectid import ObjectId

SAMPLE = Path(__file__).parents[2] / "deploy" / "sample"
DOCS = SAMPLE / "docs"
TODAY = datetime(2026, 11, 30, tzinfo=UTC)

Row: TypeAlias = dict[str, Any]

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


def test_spot_ratings_agree_with_active_reviews() -> None:
    """A spot's rating and count are those of its active reviews, wherever it carries a count."""
    reviews = [found for found in load("spot_reviews") if found["status"] == "active"]
    for spot in load("spots"):
        stars = [found["rating"] for found in reviews if found["spotId"] == str(spot["_id"])]
        if "reviewCount" in spot:
            assert spot["reviewCount"] == len(stars), spot["name"]
            assert spot["rating"] == (round(sum(stars) / len(stars), 1) if stars else None), spot["name"]
    pairs = [(found["spotId"], found["userId"]) for found in reviews]
    assert len(set(pairs)) == len(pairs) == 15


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


def test_tricklists_have_every_owner_shape() -> None:
    """Owners are DBRefs with strings or ObjectIds, or unreadable; old lists embed, lack or misname tricks."""
    owners = {number: row("tricklists", number)["user"] for number in range(1, 9)}
    assert all(isinstance(owners[number], DBRef) for number in range(1, 8))
    assert all(isinstance(owners[number].id, str) for number in (1, 2, 3, 6, 7))
    assert all(isinstance(owners[number].id, ObjectId) for number in (4, 5))
    assert owners[8] is None
    assert len({str(owners[number].id) for number in range(1, 8)}) == 5
    assert "userId" in row("tricklists", 5)
    assert row("tricklists", 5)["tricks"][1]["checked"] is True
    assert "tricks" not in row("tricklists", 6)
    assert "isPublic" not in row("tricklists", 4)
    assert "lastViewedAt" in row("tricklists", 4)
    assert row("tricklists", 2)["createdBy"] == "kaori"


def test_tricklist_membership_disagrees_in_one_place() -> None:
    """The array of list 7 and the tricks' own `list_id` tell different stories, and no other list does."""
    claimed = {
        str(entry["_id"]): str(found["_id"])
        for found in load("tricklists")
        for entry in found.get("tricks", [])
        if str(found["_id"]) != the_id("tricklists", 7)
    }
    stored = {str(found["_id"]): found.get("list_id") for found in load("tricks")}
    assert [trick for trick, owner in claimed.items() if trick in stored and stored[trick] != owner] == []
    entries = {str(entry["_id"]) for entry in row("tricklists", 7)["tricks"]}
    assert the_id("tricks", 1) in entries
    assert the_id("tricks", 15) not in entries
    assert stored[the_id("tricks", 15)] == the_id("tricklists", 7)
    assert dangling(list(claimed), "tricks") == [the_id("tricks", 901)]


def test_checked_is_spelt_in_every_way() -> None:
    """All spellings of a trick's state occur, including the booleans, null and nothing at all."""
    absent = "absent"
    seen = {repr(found.get("checked", absent)) for found in load("tricks")}
    wanted = ("To Do", "Learning", "Completed", "Complete", "Landed", "Mastered", "Not Started", "completed", absent)
    assert {repr(value) for value in (*wanted, True, False, None)} == seen


def test_tricks_refer_to_lists_in_every_way() -> None:
    """A list id is a string, absent, malformed, or names a list that is gone."""
    assert "list_id" not in row("tricks", 17)
    assert not ObjectId.is_valid(row("tricks", 18)["list_id"])
    named = [found["list_id"] for found in load("tricks") if "list_id" in found]
    assert all(isinstance(target, str) for target in named)
    assert dangling(named, "tricklists") == ["not-an-id", the_id("tricklists", 999)]
    assert "clientVersion" in row("tricks", 19)
    assert ObjectId.is_valid(row("tricks", 14)["trickipediaId"])
    assert "(" in row("tricks", 2)["name"]


def test_references_to_users_resolve() -> None:
    """Every owner, author, member, friend and companion is one of the users."""
    fields = {
        "spots": ["userId"],
        "companion_profiles": ["userId", "companionId"],
        "spotlists": ["userId"],
        "spot_reviews": ["userId"],
        "spot_trick_history": ["userId", "upvotedBy"],
        "feed_posts": ["userId"],
        "comments": ["userId"],
        "bot_chats": ["userId", "fromUserId", "toUserId"],
        "conversations": ["participants", "unreadCount", "admins", "createdBy", "requestedBy"],
        "dm_messages": ["senderId"],
        "users": ["homies"],
        "tricklists": ["userId"],
    }
    for collection, names in fields.items():
        flat = [one for found in load(collection) for name in names for one in each(found.get(name, []))]
        assert flat
        assert dangling(flat, "users") == [], collection
    owners = [str(found["user"].id) for found in load("tricklists") if found["user"] is not None]
    assert dangling(owners, "users") == []


def test_references_to_spots_resolve_but_one() -> None:
    """Lists, reviews, posts and tricks name spots that exist; one history row outlived its spot."""
    listed = [str(spot) for found in load("spotlists") for spot in found["spotIds"]]
    reviewed = [found["spotId"] for found in load("spot_reviews")]
    posted = [found["spotId"] for name in ("feed_posts", "tricks") for found in load(name) if found.get("spotId")]
    history = [found["spotId"] for found in load("spot_trick_history")]
    assert all(isinstance(spot, str) for spot in reviewed)
    assert all(isinstance(spot, ObjectId) for spot in history)
    assert dangling([*listed, *reviewed, *posted], "spots") == []
    assert dangling([str(spot) for spot in history], "spots") == [the_id("spots", 999)]
    assert math.isnan(row("spot_trick_history", 3)["year"])


def test_other_references_resolve() -> None:
    """Tricks, posts, films, library items and conversations that are named exist."""
    tricks = [str(one) for found in load("spotlists") for one in found["trickIds"]]
    tricks += [one for found in load("feed_posts") for one in found.get("trickIds", [])]
    assert dangling(tricks, "tricks") == []
    posts = [found["postId"] for found in load("comments")]
    posts += [found["feedPostId"] for found in load("tricks") if found.get("feedPostId")]
    assert dangling(posts, "feed_posts") == []
    assert dangling([one["filmId"] for found in load("riders") for one in found["couchCredits"]], "couch_videos") == []
    assert dangling([one for found in load("media_collections") for one in found["mediaIds"]], "media_library") == []
    collections = [found["collectionId"] for found in load("couch_videos") if "collectionId" in found]
    assert dangling(collections, "media_collections") == []
    assert dangling([found["conversationId"] for found in load("dm_messages")], "conversations") == []
    for found in load("dm_messages"):
        shared = found["sharedContent"]
        if shared:
            assert dangling([shared["contentId"]], f"{shared['contentType']}s") == []


def test_spot_lists_respect_the_free_limits() -> None:
    """Each user has one Saved bucket at most, and the free user stands exactly at the limits."""
    rows = load("spotlists")
    buckets = [found["userId"] for found in rows if found["isDefaultSaved"]]
    assert sorted(buckets) == [the_id("users", 1), the_id("users", 2)]
    mine = [found for found in rows if found["userId"] == the_id("users", 2)]
    assert sum(not found["isDefaultSaved"] for found in mine) == 3
    assert max(len(found["spotIds"]) for found in mine) == 5
    assert sum(len(found["spotIds"]) for found in mine) <= 15


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


def test_docs_tree_has_every_kind_of_page() -> None:
    """Prefixes, indexes, front matter, MDX, a partial, a draft and the internal folder are all there."""
    names = {str(path.relative_to(DOCS)) for path in pages()}
    assert len(names) == 25
    assert {"03-tricklists/index.md", "internal/deployment-notes.md", "_plus-limits.mdx"} <= names
    keys = [set(front_matter(path)) for path in pages()]
    for key in ("title", "sidebar_position", "slug", "id", "description", "draft"):
        assert any(key in found for found in keys), key
    assert [path.name for path in pages() if front_matter(path).get("draft")] == ["13-trick-battles.md"]
    assert front_matter(DOCS / "05-spots/05-reviews-and-history.md") == {}
    assert (DOCS / "05-spots/_category_.json").is_file()


def test_docs_tree_has_every_kind_of_markup() -> None:
    """Tabs, components, both admonition titles, tables, fences, ids and doubled headings all occur."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages())
    for pattern in (
        r"^import Tabs from",
        r"^<TabItem ",
        r"^<StoreBadge ",
        r"^\{/\* ",
        r"^:::tip\[.+\]$",
        r"^:::note .+$",
        r"^:::warning$",
        r"^\|---\|",
        r"^```mermaid$",
        r"^## .+ \{#[a-z-]+\}$",
        r"\]\(\.\./[^)]+\.md",
        r"\]\(/docs/",
    ):
        assert re.search(pattern, text, re.MULTILINE), pattern
    fences = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert sum(line.startswith("#") for fence in fences for line in fence.splitlines()) >= 7
    headings = re.findall(r"^###? (.+)$", (DOCS / "09-events-and-riders.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings.count("Sign up") == 2


def test_docs_links_lead_to_pages() -> None:
    """Every relative link names a file of the tree."""
    for path in pages():
        for target in re.findall(r"\]\(([^)#:]+\.mdx?)(?:#[a-z-]+)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).is_file(), f"{path.name}: {target}"


def test_only_the_internal_page_holds_the_sentinel() -> None:
    """The words that reveal a leak occur on the internal page and nowhere else in the pages or rows."""
    readme = SAMPLE / "README.md"
    holders = [path for path in sample_files() if "marmalade-forklift" in path.read_text(encoding="utf-8")]
    assert holders == [readme, DOCS / "internal/deployment-notes.md"]
