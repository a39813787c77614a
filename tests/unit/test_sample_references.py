"""The sample data is consistent with itself: lists, references and links lead where its README says."""

import math
import re

from bson.dbref import DBRef
from bson.objectid import ObjectId

from tests.support.sample import (
    DOCS,
    SAMPLE,
    dangling,
    each,
    front_matter,
    load,
    pages,
    row,
    sample_files,
    the_id,
)


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
