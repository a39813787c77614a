"""Rows that an old program, or a rider who means harm, left in the collections: they break and show nothing."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from brain.trickbook.facts import MOST_FACTS
from tests.support.tool_world import BOT, JUNO, LOTTE, MIKA, NOW, PRIYA, ToolWorld, sample_id


async def own_list_id(world: ToolWorld, rider: str) -> str:
    """The first of the rider's lists that the tool tells of."""
    return str((await world.call("get_user_tricklists", rider)).data["recentLists"][0]["id"])


@pytest.mark.parametrize("tool", ["get_user_tricklists", "my_progress", "recommend_next_trick", "read_feed"])
async def test_a_trick_that_claims_several_lists_is_on_none(world: ToolWorld, tool: str) -> None:
    """The backend stores what a request's body holds: an array of list ids meets a query for one of them."""
    before = (await world.call(tool, MIKA)).data
    row = {"name": "Not hers", "list_id": [await own_list_id(world, MIKA), "x"], "checked": "Complete"}
    await world.database["tricks"].insert_one(row)
    assert (await world.call(tool, MIKA)).data == before


async def test_a_post_for_homies_needs_one_author(world: ToolWorld) -> None:
    """Two authors are none: an array meets the query for the one who has the rider in their circle."""
    odd = {"userId": [JUNO, PRIYA], "status": "published", "visibility": "homies", "createdAt": NOW}
    added = str((await world.database["feed_posts"].insert_one(odd)).inserted_id)
    for whose in ("homies", "everyone"):
        assert added not in (await world.call("read_feed", MIKA, whose=whose, limit=10)).ids


@pytest.mark.parametrize("status", [["published"], ["draft", "published"]])
async def test_a_library_row_of_an_odd_status_is_not_published(world: ToolWorld, status: object) -> None:
    """The admin's form stores any type."""
    row = {"title": "Kickflip secrets", "type": "tutorial", "status": status, "sportTypes": ["skateboarding"]}
    added = str((await world.database["media_library"].insert_one(row)).inserted_id)
    assert added not in (await world.call("find_videos", trick="kickflip", limit=10)).ids


@pytest.mark.parametrize("status", ["APPROVED", ["approved"], ["approved", "rejected"]])
async def test_an_approval_is_that_very_word(world: ToolWorld, status: object) -> None:
    """Also where a state is searched, which compares without case."""
    spot = {"name": "Hidden Ditch", "state": "Oregon", "latitude": 1.0, "longitude": 1.0, "approvalStatus": status}
    await world.database["spots"].insert_one(spot | {"userId": ObjectId(LOTTE)})
    for arguments in ({"state": "oregon"}, {"query": "hidden ditch"}, {"state": "Oregon", "query": "hidden"}):
        assert "Hidden Ditch" not in (await world.call("search_spots", **arguments)).text


async def test_long_names_are_recognised(world: ToolWorld) -> None:
    """As long as an argument may be."""
    title, trick = "t" * 200, "k" * 200
    first = (await world.call("create_tricklist", PRIYA, title=title)).data
    assert (await world.call("create_tricklist", PRIYA, title=title)).data["listId"] == first["listId"]
    added = (await world.call("add_trick_to_list", PRIYA, trick_name=trick, list_id=first["listId"])).data
    again = (await world.call("add_trick_to_list", PRIYA, trick_name=trick, list_id=first["listId"])).data
    assert again["trickId"] == added["trickId"]
    spots = await world.database["spotlists"].insert_one({"userId": PRIYA, "name": "s" * 200, "spotIds": []})
    saved = await world.call("save_spot", PRIYA, spot_id=sample_id("30", 1), list_name="S" * 200)
    assert saved.data["listId"] == str(spots.inserted_id)


async def test_many_facts_of_the_apps_own_cost_little(world: ToolWorld) -> None:
    """The app may store any memory: what is compared is bounded."""
    facts = [f"fact number {number} about board {number * 7} at park {number * 13}" for number in range(20_000)]
    profile: dict[str, Any] = {"userId": MIKA, "companionId": BOT, "memory": {"knownFacts": facts}}
    await world.database["companion_profiles"].delete_many({"userId": MIKA})
    await world.database["companion_profiles"].insert_one(profile)
    kept = await world.call("remember_user_info", MIKA, fact="Rides goofy")
    assert kept.code is None
    stored = await world.database["companion_profiles"].find_one({"userId": MIKA})
    assert stored is not None
    assert stored["memory"]["knownFacts"] == [*facts[1 - MOST_FACTS :], "Rides goofy"]


async def test_saves_at_the_same_time_pass_no_limit(world: ToolWorld) -> None:
    """All three read fourteen of fifteen, each for a list of its own; two of them are refused."""
    lists, spots = world.database["spotlists"], [ObjectId() for _ in range(14)]
    await lists.delete_many({"userId": PRIYA})
    await world.database["users"].update_one({"_id": ObjectId(PRIYA)}, {"$unset": {"subscription": 1, "role": 1}})
    for number, name in enumerate(("One", "Two", "Three", "Saved Spots")):
        held = spots[4 * number : 4 * number + 4]
        row = {"userId": PRIYA, "name": name, "spotIds": held, "isDefaultSaved": name == "Saved Spots"}
        await lists.insert_one(row)
    calls = [
        world.call("save_spot", PRIYA, spot_id=sample_id("30", number), list_name=name)
        for number, name in enumerate(("One", "Two", "Three"), 1)
    ]
    answers = await asyncio.gather(*calls)
    assert sorted(str(answer.code) for answer in answers) == ["None", "limit_reached", "limit_reached"]
    assert sum([len(row["spotIds"]) async for row in lists.find({"userId": PRIYA})]) == len(spots) + 1


@pytest.mark.parametrize("stored", [str, ObjectId])
async def test_the_oldest_tricks_are_marked_whatever_their_ids_are(world: ToolWorld, stored: type) -> None:
    """Text or ObjectId."""
    trick, id_ = "76" + "0" * 20 + "99", ObjectId()
    entry = {"_id": stored(trick), "name": "Old flip", "checked": False}
    await world.database["tricklists"].insert_one({"_id": id_, "user": PRIYA, "tricks": [entry]})
    marked = await world.call("update_trick_status", PRIYA, trick_id=trick, status="Complete")
    assert marked.data["trickName"] == "Old flip"
    assert (await world.row("tricklists", str(id_)))["tricks"] == [entry | {"checked": "Complete"}]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search_spots", {"query": "plaza"}),
        ("spots_near_me", {"latitude": 45.52, "longitude": -122.66}),
        ("read_feed", {"whose": "everyone"}),
        ("find_videos", {"trick": "kickflip"}),
        ("recommend_next_trick", {}),
        ("learning_path", {"trick_name": "kickflip"}),
    ],
)
async def test_a_word_that_is_no_sport_is_said_to_be_ignored(
    world: ToolWorld, tool: str, arguments: dict[str, object]
) -> None:
    """Nobody takes what was found for what was asked for."""
    assert "sport was ignored" not in (await world.call(tool, MIKA, sport="snowboard", **arguments)).text
    assert "sport was ignored" in (await world.call(tool, MIKA, sport="curling", **arguments)).text


async def test_events_of_a_sport_that_trickbook_does_not_know(world: ToolWorld) -> None:
    """Events name any sport: by that very word, whatever its case, and by no other."""
    assert (await world.call("find_events", sport="curling")).ids == []
    row = {"title": "Bonspiel", "sports": ["Curling"], "startAt": NOW + timedelta(days=3), "endAt": None}
    added = (await world.database["events"].insert_one(row)).inserted_id
    assert (await world.call("find_events", sport="curling ")).ids == [str(added)]
