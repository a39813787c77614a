"""The rider's trick lists over the sample: every owner shape, every spelling of a status, writes that happen once."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from bson import DBRef, ObjectId

from brain.knowledge.connect import Row
from tests.support.tool_world import JUNO, LOTTE, MIKA, NOW, PRIYA, SAM, TANE, ToolWorld, sample_id

FLATGROUND = sample_id("73", 1)
"""Mika's first list: tricks 1 to 4."""


def a_list(number: int) -> str:
    """The id of a sample list."""
    return sample_id("73", number)


def trick(number: int) -> str:
    """The id of a sample trick."""
    return sample_id("74", number)


async def entries(world: ToolWorld, list_id: str) -> list[str]:
    """The ids in a list's array."""
    return [str(entry["_id"]) for entry in (await world.row("tricklists", list_id)).get("tricks", [])]


async def rows(world: ToolWorld, list_id: str) -> list[Row]:
    """The tricks that say they are on a list."""
    return await world.database["tricks"].find({"list_id": list_id}).sort("_id").to_list()


async def snapshot(world: ToolWorld) -> dict[str, Any]:
    """Everything that the tools could write."""
    return {
        name: await world.database[name].find().sort("_id").to_list()
        for name in ("tricks", "tricklists", "companion_profiles", "users")
    }


# --- reading ----------------------------------------------------------------------------------------------------------


async def test_the_keys_and_counts_of_the_shipped_tool(world: ToolWorld) -> None:
    """The words "Completed", "Landed" and "Complete" are landed, "Learning" is not; a card a list."""
    found = await world.call("get_user_tricklists", MIKA)
    assert set(found.data) == {"totalListCount", "recentLists", "responseGuide"}
    assert found.data["totalListCount"] == 2
    first, second = found.data["recentLists"]
    assert (first["id"], first["name"], first["totalTricks"], first["completed"]) == (
        FLATGROUND,
        "Autumn flatground",
        4,
        2,
    )
    assert [one["status"] for one in first["tricks"]] == ["Complete", "Learning", "Complete", "To Do"]
    assert (second["totalTricks"], second["completed"]) == (2, 1)
    assert [(card.type, card.data["progress"]) for card in found.cards] == [("tricklist_card", 50)] * 2


@pytest.mark.parametrize(
    ("rider", "lists", "landed"),
    [
        (JUNO, [3], [1]),  # Mastered, missing, null, false
        (TANE, [4], [1]),  # owner an ObjectId; true, Not Started
        (LOTTE, [5], [1]),  # embedded tricks, one of them without a row
        (PRIYA, [6, 7], [0, 1]),  # no `tricks` at all; "completed"
    ],
)
async def test_every_age_of_list(world: ToolWorld, rider: str, lists: list[int], landed: list[int]) -> None:
    """Legacy lists were invisible to the companion, and a missing array threw."""
    found = await world.call("get_user_tricklists", rider)
    assert [one["id"] for one in found.data["recentLists"]] == [a_list(number) for number in lists]
    assert [one["completed"] for one in found.data["recentLists"]] == landed


async def test_membership_that_disagrees(world: ToolWorld) -> None:
    """List 7 names Mika's trick 1 and does not name Priya's 15: hers are shown, his is not."""
    found = await world.call("get_user_tricklists", PRIYA)
    assert [one["id"] for one in found.data["recentLists"][1]["tricks"]] == [trick(14), trick(15)]
    assert "Kickflip" not in found.text


async def test_the_oldest_tricks_are_only_in_their_list(world: ToolWorld) -> None:
    """The row first, the embedded copy where there is no row."""
    (one,) = (await world.call("get_user_tricklists", LOTTE)).data["recentLists"]
    assert one["tricks"] == [
        {"id": trick(13), "name": "Tailwhip", "status": "Learning"},
        {"id": trick(901), "name": "Bunny Hop", "status": "Complete"},
    ]


async def test_no_lists(world: ToolWorld) -> None:
    """An empty array and a sentence."""
    found = await world.call("get_user_tricklists", SAM)
    assert (found.data["lists"], found.data["totalListCount"]) == ([], 0)
    assert "message" in found.data


async def test_the_latest_three_lists_and_five_tricks(world: ToolWorld) -> None:
    """The rest is counted."""
    list_id = ""
    for number in range(4):
        world.now = NOW + timedelta(minutes=number)
        list_id = (await world.call("create_tricklist", SAM, title=f"List {number}")).data["listId"]
    for number in range(7):
        await world.call("add_trick_to_list", SAM, list_id=list_id, trick_name=f"Trick {number}")
    found = await world.call("get_user_tricklists", SAM)
    assert found.data["totalListCount"] == 4
    assert [one["name"] for one in found.data["recentLists"]] == ["List 1", "List 2", "List 3"]
    assert found.data["recentLists"][2]["totalTricks"] == 7
    assert len(found.data["recentLists"][2]["tricks"]) == 5


async def test_lists_whose_owner_cannot_be_read_are_nobodys(world: ToolWorld) -> None:
    """List 8 has no owner; a list whose two fields disagree is `user`'s."""
    await world.database["tricklists"].insert_one(
        {"_id": ObjectId(), "name": "Both", "user": DBRef("users", JUNO), "userId": SAM, "tricks": []}
    )
    assert (await world.call("get_user_tricklists", SAM)).data["totalListCount"] == 0
    assert (await world.call("get_user_tricklists", JUNO)).data["totalListCount"] == 2


@pytest.mark.parametrize(
    "tool", ["get_user_tricklists", "create_tricklist", "add_trick_to_list", "update_trick_status"]
)
async def test_nobody_has_lists(world: ToolWorld, tool: str) -> None:
    """Without a rider there is nothing to read or write."""
    assert (await world.call(tool, None)).code == "not_signed_in"


# --- making a list ----------------------------------------------------------------------------------------------------


async def test_a_new_list_has_the_shape_of_the_schema(world: ToolWorld) -> None:
    """A public list of the rider's, `$ref` before `$id`, an int32 count, a BSON date."""
    made = await world.call("create_tricklist", SAM, title="  Winter   rails ")
    assert set(made.data) == {"success", "listId", "name", "message"}
    stored = await world.row("tricklists", made.data["listId"])
    assert stored == {
        "_id": ObjectId(made.data["listId"]),
        "name": "Winter rails",
        "user": DBRef("users", SAM),
        "completed": 0,
        "tricks": [],
        "isPublic": True,
        "createdBy": "kaori",
        "createdAt": NOW,
    }


async def test_a_list_of_that_name_is_not_made_twice(world: ToolWorld) -> None:
    """In any spelling, also of a legacy list; another rider's does not count."""
    made = await world.call("create_tricklist", TANE, title="REEF days")
    assert made.data["listId"] == a_list(4)
    assert (await world.call("create_tricklist", SAM, title="Reef days")).data["listId"] != a_list(4)


@pytest.mark.parametrize("title", ["", "   ", "\u200b", "x" * 201, 5, None, {"$gt": ""}, ["x"]])
async def test_a_list_needs_a_title(world: ToolWorld, title: object) -> None:
    """Empty ones were accepted."""
    before = await snapshot(world)
    assert (await world.call("create_tricklist", SAM, title=title)).code == "invalid_arguments"
    assert await snapshot(world) == before


# --- adding a trick ---------------------------------------------------------------------------------------------------


async def test_a_trick_is_a_row_and_an_entry(world: ToolWorld) -> None:
    """`list_id` is text; the entry holds the id alone."""
    added = await world.call("add_trick_to_list", MIKA, list_id=FLATGROUND, trick_name="Varial Heelflip")
    assert set(added.data) == {"success", "trickId", "trickName", "listName", "message"}
    assert added.data["listName"] == "Autumn flatground"
    stored = await world.row("tricks", added.data["trickId"])
    assert stored == {
        "_id": ObjectId(added.data["trickId"]),
        "name": "Varial Heelflip",
        "list_id": FLATGROUND,
        "checked": "To Do",
        "link": "",
        "notes": "",
        "createdBy": "kaori",
        "createdAt": NOW,
    }
    assert (await world.row("tricklists", FLATGROUND))["tricks"][-1] == {"_id": stored["_id"]}


@pytest.mark.parametrize("name", ["Kickflip", " kickFLIP ", "50 50 grind", "50\u201350 Grind", "tre flip 360 flip"])
async def test_a_trick_that_is_there_is_not_added_again(world: ToolWorld, name: str) -> None:
    """A model's retry doubled rows; the spelling does not matter."""
    before = await snapshot(world)
    added = await world.call("add_trick_to_list", MIKA, list_id=FLATGROUND, trick_name=name)
    assert added.data["success"] is True
    assert "already" in added.data["message"]
    assert await snapshot(world) == before


async def test_twice_is_once_also_at_the_same_time(world: ToolWorld) -> None:
    """In one turn, in two, and in parallel."""
    world.turn = "one turn"
    first = await world.call("add_trick_to_list", MIKA, list_id=FLATGROUND, trick_name="Laser Flip")
    again = await world.call("add_trick_to_list", MIKA, list_id=FLATGROUND, trick_name="Laser Flip")
    world.turn = None
    calls = [world.call("add_trick_to_list", MIKA, list_id=FLATGROUND, trick_name="Laser flip") for _ in range(4)]
    others = await asyncio.gather(*calls)
    assert {one.data["trickId"] for one in (first, again, *others)} == {first.data["trickId"]}
    assert first.text == again.text
    assert (await entries(world, FLATGROUND)).count(first.data["trickId"]) == 1
    assert [row["name"] for row in await rows(world, FLATGROUND)].count("Laser Flip") == 1


async def test_parallel_adds_of_a_new_trick_make_one(world: ToolWorld) -> None:
    """Two turns that both see an empty list: one waits for the other."""
    made = await world.call("create_tricklist", SAM, title="Race")
    list_id = made.data["listId"]
    calls = [world.call("add_trick_to_list", SAM, list_id=list_id, trick_name="Ollie") for _ in range(5)]
    assert {one.data["trickId"] for one in await asyncio.gather(*calls)} == set(await entries(world, list_id))
    assert len(await rows(world, list_id)) == 1


async def test_parallel_lists_of_one_name_are_one(world: ToolWorld) -> None:
    """In one turn, spelt in four ways: the later ones find the list that the first one made."""
    world.turn = "one turn"
    before = await world.database["tricklists"].count_documents({})
    calls = [world.call("create_tricklist", SAM, title=title) for title in ("Rainy", "rainy", "RAINY", "Rainy ")]
    assert len({one.data["listId"] for one in await asyncio.gather(*calls)}) == 1
    assert await world.database["tricklists"].count_documents({}) == before + 1


async def test_a_row_without_its_entry_is_completed(world: ToolWorld) -> None:
    """The old tool died between its two writes: trick 15 says it is on list 7, and the list does not know."""
    added = await world.call("add_trick_to_list", PRIYA, list_id=a_list(7), trick_name="standup slide")
    assert added.data["trickId"] == trick(15)
    assert (await entries(world, a_list(7)))[-1] == trick(15)
    assert [row["_id"] for row in await rows(world, a_list(7))] == [ObjectId(trick(14)), ObjectId(trick(15))]


async def test_an_entry_without_its_row_is_taken_back(world: ToolWorld) -> None:
    """It has no name anywhere; an entry that names another's trick, or embeds a copy, stays."""
    lost = ObjectId()
    await world.database["tricklists"].update_one({"_id": ObjectId(a_list(7))}, {"$push": {"tricks": {"_id": lost}}})
    await world.call("add_trick_to_list", PRIYA, list_id=a_list(7), trick_name="Foot Brake")
    assert await entries(world, a_list(7)) == [trick(14), trick(1)]
    await world.call("add_trick_to_list", LOTTE, list_id=a_list(5), trick_name="bunny hop")
    assert await entries(world, a_list(5)) == [trick(13), trick(901)]


@pytest.mark.parametrize("stored", ["missing", None, "gone", 5, {}])
async def test_a_list_whose_array_is_none_gets_one(world: ToolWorld, stored: object) -> None:
    """`tricks` may be missing or anything: the old tool threw."""
    if stored != "missing":
        await world.database["tricklists"].update_one({"_id": ObjectId(a_list(6))}, {"$set": {"tricks": stored}})
    added = await world.call("add_trick_to_list", PRIYA, list_id=a_list(6), trick_name="Ollie")
    assert await entries(world, a_list(6)) == [added.data["trickId"]]


async def test_the_oldest_lists_are_their_owners(world: ToolWorld) -> None:
    """An owner that is an ObjectId, or a DBRef of one."""
    assert (await world.call("add_trick_to_list", TANE, list_id=a_list(4), trick_name="Floater")).data["success"]


@pytest.mark.parametrize(
    ("list_id", "code"),
    [
        (FLATGROUND, "forbidden"),  # Mika's, a DBRef with a string
        (a_list(4), "forbidden"),  # Tane's, a DBRef with an ObjectId
        (a_list(5), "forbidden"),
        (a_list(8), "forbidden"),  # nobody's
        (a_list(999), "not_found"),
        ("not-an-id", "invalid_arguments"),
        ("", "invalid_arguments"),
        ({"$ne": None}, "invalid_arguments"),
    ],
)
async def test_nobody_elses_list(world: ToolWorld, list_id: object, code: str) -> None:
    """The old check was skipped for every hydrated DBRef: anyone could add to anything."""
    before = await snapshot(world)
    assert (await world.call("add_trick_to_list", JUNO, list_id=list_id, trick_name="Ollie")).code == code
    assert (await world.call("add_trick_to_list", JUNO, list_id=list_id, trick_name="Kickflip")).code == code
    assert await snapshot(world) == before


@pytest.mark.parametrize("name", ["", "  ", "\u200b\u2060", "x" * 201, None, 7])
async def test_a_trick_needs_a_name(world: ToolWorld, name: object) -> None:
    """Empty ones were accepted."""
    before = await snapshot(world)
    assert (await world.call("add_trick_to_list", MIKA, list_id=FLATGROUND, trick_name=name)).code == (
        "invalid_arguments"
    )
    assert await snapshot(world) == before


async def test_a_name_is_only_a_name(world: ToolWorld) -> None:
    """Patterns, operators and brackets are stored as they are, and found again."""
    for name in ("c++ (switch)", "50-50 (Switch", "$where", "a.*"):
        first = await world.call("add_trick_to_list", MIKA, list_id=FLATGROUND, trick_name=name)
        again = await world.call("add_trick_to_list", MIKA, list_id=FLATGROUND, trick_name=name)
        assert first.data["trickId"] == again.data["trickId"]
        assert (await world.row("tricks", first.data["trickId"]))["name"] == name


# --- how far a trick is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["Complete", "To Do"])
async def test_a_status_is_written_as_the_app_reads_it(world: ToolWorld, status: str) -> None:
    """With `updatedAt`, and nothing else changed."""
    before = await world.row("tricks", trick(2))
    told = await world.call("update_trick_status", MIKA, trick_id=trick(2), status=status)
    assert (told.data["trickId"], told.data["trickName"], told.data["newStatus"]) == (
        trick(2),
        "Tre Flip (360 Flip)",
        status,
    )
    assert await world.row("tricks", trick(2)) == {**before, "checked": status, "updatedAt": NOW}


@pytest.mark.parametrize("status", ["Completed", "complete", "Landed", "", True, None, {"$set": 1}, "x" * 300])
async def test_no_other_status(world: ToolWorld, status: object) -> None:
    """The enum was not enforced where it mattered."""
    before = await snapshot(world)
    assert (await world.call("update_trick_status", MIKA, trick_id=trick(2), status=status)).code == (
        "invalid_arguments"
    )
    assert await snapshot(world) == before


@pytest.mark.parametrize(
    ("trick_id", "code"),
    [
        (trick(1), "forbidden"),  # Mika's, named by a list of Priya's too
        (trick(11), "forbidden"),  # Tane's, by an ObjectId
        (trick(16), "forbidden"),  # of a list that is nobody's
        (trick(17), "forbidden"),  # without list_id
        (trick(18), "forbidden"),  # list_id malformed: the old constructor threw
        (trick(19), "forbidden"),  # the list is gone
        (trick(901), "not_found"),  # embedded in Lotte's list
        (trick(999), "not_found"),
        ("../1", "invalid_arguments"),
    ],
)
@pytest.mark.parametrize("rider", [JUNO, PRIYA])
async def test_nobody_elses_trick(world: ToolWorld, rider: str, trick_id: str, code: str) -> None:
    """Deny by default, whatever cannot be read."""
    before = await snapshot(world)
    assert (await world.call("update_trick_status", rider, trick_id=trick_id, status="Complete")).code == code
    assert await snapshot(world) == before


async def test_the_oldest_tricks_are_marked_inside_their_list(world: ToolWorld) -> None:
    """The only place where they are; their neighbours stay as they were."""
    before = (await world.row("tricklists", a_list(5)))["tricks"]
    told = await world.call("update_trick_status", LOTTE, trick_id=trick(901), status="To Do")
    assert told.data["trickName"] == "Bunny Hop"
    assert (await world.row("tricklists", a_list(5)))["tricks"] == [before[0], {**before[1], "checked": "To Do"}]
    (one,) = (await world.call("get_user_tricklists", LOTTE)).data["recentLists"]
    assert one["completed"] == 0
