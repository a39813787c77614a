"""The feed: every visibility, every owner shape, and nothing that was not meant for this rider."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from tests.support.tool_world import JUNO, LOTTE, MIKA, NOW, PRIYA, SAM, TANE, ToolWorld, sample_id


def post(number: int) -> str:
    """The id of a sample post."""
    return sample_id("78", number)


@pytest.mark.parametrize(
    ("rider", "numbers"),
    [(MIKA, [1]), (JUNO, [2]), (TANE, [3, 5]), (LOTTE, [4, 6]), (PRIYA, [7]), (SAM, [])],
)
async def test_own_posts_whatever_their_visibility(world: ToolWorld, rider: str, numbers: list[int]) -> None:
    """By owners stored as text and as ObjectIds; one still processing, one private; the newest first."""
    found = await world.call("read_feed", rider)
    assert found.ids == [post(number) for number in numbers]
    assert all(hit["mine"] for hit in found.data["results"])


@pytest.mark.parametrize(
    ("rider", "numbers"),
    [
        (MIKA, [3, 2, 1, 6]),  # Juno's for homies: Mika is in her circle
        (JUNO, [3, 2, 1, 5, 6]),  # Tane's for homies too
        (TANE, [3, 2, 1, 5, 6]),  # his own for homies, and Juno's: he is in her circle
        (LOTTE, [4, 3, 1, 6]),
        (PRIYA, [7, 3, 1, 6]),
        (SAM, [3, 1, 6]),
    ],
)
async def test_everyone_means_what_the_rider_may_see(world: ToolWorld, rider: str, numbers: list[int]) -> None:
    """Own ones, public and published ones, those for homies of authors who have the rider in their circle."""
    found = await world.call("read_feed", rider, whose="everyone", limit=10)
    assert found.ids == [post(number) for number in numbers]


@pytest.mark.parametrize(
    ("rider", "numbers"),
    [(MIKA, [2, 6]), (JUNO, [3, 1, 5]), (TANE, [2]), (LOTTE, []), (PRIYA, []), (SAM, [])],
)
async def test_homies_are_whom_the_rider_has_chosen(world: ToolWorld, rider: str, numbers: list[int]) -> None:
    """Posts of the rider's own circle; those for homies only when the author has the rider in theirs."""
    found = await world.call("read_feed", rider, whose="homies", limit=10)
    assert found.ids == [post(number) for number in numbers]


async def test_the_circle_is_the_authors_not_the_readers(world: ToolWorld) -> None:
    """To put somebody among one's homies opens nothing; to be put there does, as text or ObjectId."""
    users = world.database["users"]
    await users.update_one({"_id": ObjectId(SAM)}, {"$set": {"homies": [TANE, JUNO]}})
    assert (await world.call("read_feed", SAM, whose="homies")).ids == [post(3)]
    await users.update_one({"_id": ObjectId(TANE)}, {"$set": {"homies": [ObjectId(SAM)]}})
    assert (await world.call("read_feed", SAM, whose="homies")).ids == [post(3), post(5)]
    await users.update_one({"_id": ObjectId(JUNO)}, {"$set": {"homies": SAM}})
    assert post(2) in (await world.call("read_feed", SAM, whose="everyone", limit=10)).ids


async def test_a_post_with_all_its_facts(world: ToolWorld) -> None:
    """The author by name, the spot, the rider's own tricks; no hosting id, no image address, no e-mail."""
    (hit,) = (await world.call("read_feed", MIKA)).data["results"]
    assert hit == {
        "id": post(1),
        "mine": True,
        "author": "Mika Sandoval",
        "mediaType": "video",
        "caption": "Kickflip, finally, with two feet and one scream.",
        "sportTypes": ["skateboarding"],
        "tricks": ["Kickflip"],
        "spotId": sample_id("30", 1),
        "spotName": "Burnside Yard Bowls",
        "visibility": "public",
        "postedAt": "2026-03-14T16:00:00Z",
        "likes": 12,
        "comments": 2,
        "views": 240,
    }
    seen = await world.call("read_feed", JUNO, whose="everyone", limit=10)
    for word in ("sample-internal", "images.example.com", "@example", "password", "bunny"):
        assert word not in seen.text
    assert [hit["tricks"] for hit in seen.data["results"] if not hit["mine"]] == [[]] * 4
    assert next(hit["author"] for hit in seen.data["results"] if hit["id"] == post(3)) == "Tane Rewi"


async def test_reading_counts_no_view(world: ToolWorld) -> None:
    """And writes nothing else."""
    before = await world.database["feed_posts"].find().sort("_id").to_list()
    await world.call("read_feed", JUNO, whose="everyone")
    assert await world.database["feed_posts"].find().sort("_id").to_list() == before


@pytest.mark.parametrize("sport", ["surf", "surfing", "Surfing"])
async def test_surf_is_surfing(world: ToolWorld, sport: str) -> None:
    """The feed stores "surf"; newer rows may store the other."""
    newer = {
        "userId": LOTTE,
        "status": "published",
        "visibility": "public",
        "sportTypes": ["surfing"],
        "createdAt": NOW,
    }
    added = (await world.database["feed_posts"].insert_one(newer)).inserted_id
    found = await world.call("read_feed", JUNO, whose="everyone", sport=sport)
    assert found.ids == [str(added), post(3), post(5)]
    assert {tuple(hit["sportTypes"]) for hit in found.data["results"]} == {("surfing",)}


async def test_a_spot_that_is_not_to_be_seen_is_not_named(world: ToolWorld) -> None:
    """A post may point at a spot that is private or gone."""
    for number in (23, 999):
        await world.database["feed_posts"].update_one(
            {"_id": ObjectId(post(1))}, {"$set": {"spotId": sample_id("30", number)}}
        )
        seen = await world.call("read_feed", TANE, whose="everyone", sport="skate")
        (hit,) = (hit for hit in seen.data["results"] if hit["id"] == post(1))
        assert "spotName" not in hit
        assert "spotId" not in hit
        assert "Grandma's Driveway" not in seen.text


ODD: list[dict[str, Any]] = [
    {"caption": None, "sportTypes": "surf", "stats": None, "createdAt": "2026-11-01T00:00:00Z"},
    {"caption": {"$gt": ""}, "trickIds": "x", "stats": {"likes": float("nan"), "views": -1, "comments": "9"}},
    {"caption": ["a"] * 500, "spotId": 7, "location": [1], "createdAt": 5, "mediaType": {}},
    {"userId": {"$id": LOTTE}, "caption": "x" * 9_000, "createdAt": NOW - timedelta(days=400)},
]


async def test_odd_posts_break_no_answer(world: ToolWorld) -> None:
    """Each is told by what can be read of it."""
    rows = [{"userId": ObjectId(LOTTE), "status": "published", "visibility": "public", **odd} for odd in ODD]
    ids = {str(id_) for id_ in (await world.database["feed_posts"].insert_many(rows)).inserted_ids}
    found = await world.call("read_feed", JUNO, whose="everyone", limit=10)
    assert ids <= set(found.ids)
    assert all(len(hit.get("caption", "")) <= 280 for hit in found.data["results"])
    dates = [hit.get("postedAt", "") for hit in found.data["results"]]
    assert dates == sorted(dates, reverse=True)


@pytest.mark.parametrize(
    "odd",
    [
        {"visibility": "Public"},
        {"visibility": None},
        {"visibility": ["public"]},
        {"visibility": "public", "status": "processing"},
        {"visibility": "public", "status": None},
        {"visibility": "public", "status": ["published"]},
        {},
    ],
)
async def test_other_words_are_the_authors_alone(world: ToolWorld, odd: dict[str, Any]) -> None:
    """Anything but exactly public or homies, and anything but published, is for its author."""
    row = {
        "userId": LOTTE,
        "status": "published",
        "visibility": "friends",
        "createdAt": NOW,
    }
    added = str((await world.database["feed_posts"].insert_one(row | odd)).inserted_id)
    assert added not in (await world.call("read_feed", MIKA, whose="everyone", limit=10)).ids
    assert added in (await world.call("read_feed", LOTTE)).ids


async def test_the_limit_keeps_the_newest(world: ToolWorld) -> None:
    """Over all kinds together."""
    assert (await world.call("read_feed", JUNO, whose="everyone", limit=2)).ids == [post(3), post(2)]
    for arguments in ({"limit": 0}, {"limit": 11}, {"whose": "all"}, {"user_id": MIKA}):
        assert (await world.call("read_feed", JUNO, **arguments)).code == "invalid_arguments"


async def test_nobody_has_no_feed(world: ToolWorld) -> None:
    """It needs a rider."""
    assert (await world.call("read_feed")).code == "not_signed_in"
