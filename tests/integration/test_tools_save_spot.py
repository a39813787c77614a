"""Saving spots: the bucket and named lists, each limit at its border, and whose lists they are."""

import asyncio
import os
from typing import Any

import pytest
from bson import ObjectId

from brain.trickbook.indexes import ensure_indexes
from tests.support.tool_world import JUNO, LOTTE, MIKA, NOW, PRIYA, SAM, TANE, Answer, ToolWorld, sample_id


def spot(number: int) -> str:
    """The id of a sample spot."""
    return sample_id("30", number)


def a_list(owner: object, spots: int, name: str = "List", *, saved: bool = False) -> dict[str, Any]:
    """A list of so many spots that exist nowhere else."""
    return {
        "name": name,
        "description": "",
        "userId": owner,
        "spotIds": [ObjectId() for _ in range(spots)],
        "trickIds": [],
        "isDefaultSaved": saved,
    }


async def lists(world: ToolWorld, owner: str) -> list[dict[str, Any]]:
    """A rider's lists as stored."""
    return await world.database["spotlists"].find({"userId": owner}).sort("_id").to_list()


def refused(answer: Answer, limit: int, current: int) -> bool:
    """Whether the answer names the limit, what there is, and the way out."""
    told = f"limit {limit}, current {current}, upgradeRequired true"
    return answer.code == "limit_reached" and told in answer.error["message"] and not answer.error["retryable"]


async def test_into_the_bucket_that_is_there(world: ToolWorld) -> None:
    """One id more, an ObjectId, and the date; the answer names the list."""
    before = await world.row("spotlists", sample_id("75", 3))
    saved = await world.call("save_spot", MIKA, spot_id=spot(12))
    assert saved.data == {
        "success": True,
        "spotId": spot(12),
        "spotName": "Southern Cross Bowl",
        "listId": sample_id("75", 3),
        "listName": "Saved Spots",
        "alreadySaved": False,
        "message": "Southern Cross Bowl is saved in Saved Spots",
    }
    after = await world.row("spotlists", sample_id("75", 3))
    assert after == {**before, "spotIds": [*before["spotIds"], ObjectId(spot(12))], "updatedAt": NOW}


async def test_the_first_save_makes_the_bucket(world: ToolWorld) -> None:
    """In the shape that the schema asks for; a second save finds it, by its name too."""
    for name in ({}, {"list_name": " saved  SPOTS "}):
        assert (await world.call("save_spot", LOTTE, spot_id=spot(1), **name)).data["listName"] == "Saved Spots"
    (stored,) = await lists(world, LOTTE)
    assert isinstance(stored.pop("_id"), ObjectId)
    assert stored == {
        "name": "Saved Spots",
        "description": "",
        "userId": LOTTE,
        "spotIds": [ObjectId(spot(1))],
        "trickIds": [],
        "isDefaultSaved": True,
        "createdAt": NOW,
        "updatedAt": NOW,
    }


async def test_a_repeated_turn_gets_the_first_answer(world: ToolWorld) -> None:
    """The reply was lost and the turn comes again: nothing is done twice, and it reads as the first time."""
    world.turn = "lost"
    first = await world.call("save_spot", LOTTE, spot_id=spot(1), list_name="New")
    stored = await lists(world, LOTTE)
    again = await world.call("save_spot", LOTTE, spot_id=spot(1), list_name="New")
    assert again.text == first.text
    assert await lists(world, LOTTE) == stored


async def test_two_first_saves_at_once_make_one_bucket(world: ToolWorld) -> None:
    """One of them finds what the other made, or says that it should be tried again; nothing is lost or doubled."""
    await ensure_indexes(world.database, embedded="TEST_ATLAS_URI" not in os.environ)
    saves = await asyncio.gather(*(world.call("save_spot", LOTTE, spot_id=spot(number)) for number in (1, 2, 3)))
    for number, saved in zip((1, 2, 3), saves, strict=True):
        if saved.code is not None:
            assert (saved.code, saved.error["retryable"]) == ("conflict", True)
            assert (await world.call("save_spot", LOTTE, spot_id=spot(number))).code is None
    (stored,) = await lists(world, LOTTE)
    assert set(stored["spotIds"]) == {ObjectId(spot(number)) for number in (1, 2, 3)}


async def test_a_named_list_is_found_in_any_case_or_made(world: ToolWorld) -> None:
    """An existing one is used; a new one is a list like any that the app makes."""
    assert (await world.call("save_spot", MIKA, spot_id=spot(8), list_name="RAIN plan")).data["listName"] == "Rain plan"
    made = await world.call("save_spot", MIKA, spot_id=spot(8), list_name="Ams trip")
    stored = await world.row("spotlists", made.data["listId"])
    assert (stored["name"], stored["isDefaultSaved"], stored["userId"]) == ("Ams trip", False, MIKA)
    assert stored["spotIds"] == [ObjectId(spot(8))]
    assert len(await lists(world, MIKA)) == 4


async def test_a_list_s_name_is_what_a_reader_sees(world: ToolWorld) -> None:
    """One line without hidden characters; a name of nothing else is none."""
    made = await world.call("save_spot", MIKA, spot_id=spot(8), list_name="Am\u202es\u200b \n  trip<br>")
    assert made.data["listName"] == (await world.row("spotlists", made.data["listId"]))["name"] == "Ams trip"
    assert (await world.call("save_spot", MIKA, spot_id=spot(8), list_name="\u200b")).code == "invalid_arguments"


async def test_saving_twice_is_saving_once(world: ToolWorld) -> None:
    """Also where a limit would stop a first save, and where the id is stored as text: nothing is written."""
    await world.database["spotlists"].update_one(
        {"_id": ObjectId(sample_id("75", 4))}, {"$set": {"spotIds": [spot(number) for number in (2, 1, 3, 5, 27)]}}
    )
    before = await lists(world, JUNO)
    again = await world.call("save_spot", JUNO, spot_id=spot(2), list_name="After school")
    assert again.data["alreadySaved"] is True
    assert await lists(world, JUNO) == before


@pytest.mark.parametrize(("named", "allowed"), [(2, True), (3, False), (4, False)])
async def test_the_third_named_list_is_the_last(world: ToolWorld, named: int, allowed: bool) -> None:  # noqa: FBT001 - a table's column
    """On the free plan; the bucket is not counted, and may be made when the lists are full."""
    await world.database["spotlists"].insert_many([a_list(TANE, 1, f"L{at}") for at in range(named)])
    saved = await world.call("save_spot", TANE, spot_id=spot(1), list_name="One more")
    assert not saved.error if allowed else refused(saved, 3, named)
    assert len(await lists(world, TANE)) == named + allowed
    assert not (await world.call("save_spot", TANE, spot_id=spot(1))).error


@pytest.mark.parametrize(("spots", "allowed"), [(4, True), (5, False), (6, False)])
async def test_the_fifth_spot_of_a_list_is_the_last(world: ToolWorld, spots: int, allowed: bool) -> None:  # noqa: FBT001 - a table's column
    """On the free plan; the bucket may hold more."""
    await world.database["spotlists"].insert_many([a_list(TANE, spots), a_list(TANE, spots, saved=True)])
    saved = await world.call("save_spot", TANE, spot_id=spot(1), list_name="list")
    assert not saved.error if allowed else refused(saved, 5, spots)
    assert not (await world.call("save_spot", TANE, spot_id=spot(2))).error
    assert [len(one["spotIds"]) for one in await lists(world, TANE)] == [spots + allowed, spots + 1]


@pytest.mark.parametrize(("bucket", "allowed"), [(10, True), (11, False), (12, False)])
async def test_the_fifteenth_spot_is_the_last(world: ToolWorld, bucket: int, allowed: bool) -> None:  # noqa: FBT001 - a table's column
    """Over all lists, those in the bucket too, wherever the next one is to go."""
    before = [a_list(TANE, 4), a_list(TANE, bucket, saved=True)]
    await world.database["spotlists"].insert_many(before)
    for name in ({"list_name": "List"}, {"list_name": "Another"}, {}):
        await world.database["spotlists"].delete_many({"userId": TANE})
        await world.database["spotlists"].insert_many(before)
        saved = await world.call("save_spot", TANE, spot_id=spot(1), **name)
        assert not saved.error if allowed else refused(saved, 15, 4 + bucket)
        assert sum(len(one["spotIds"]) for one in await lists(world, TANE)) == 4 + bucket + allowed


@pytest.mark.parametrize(
    ("rider", "premium"), [(MIKA, True), (PRIYA, True), (JUNO, False), (LOTTE, False), (SAM, False)]
)
async def test_who_pays_has_no_limits(world: ToolWorld, rider: str, premium: bool) -> None:  # noqa: FBT001 - a table's column
    """Active, and canceled too; free, nothing, and an admin whose override says free have them."""
    await world.database["spotlists"].delete_many({"userId": rider})
    await world.database["spotlists"].insert_many([a_list(rider, 5, f"L{at}") for at in range(4)])
    for name in ("L1", "New"):
        saved = await world.call("save_spot", rider, spot_id=spot(1), list_name=name)
        assert (saved.code is None) is premium


async def test_the_sample_s_free_rider_is_at_her_limits(world: ToolWorld) -> None:
    """Juno: three named lists, five spots in one of them, eleven in all."""
    assert refused(await world.call("save_spot", JUNO, spot_id=spot(7), list_name="After school"), 5, 5)
    assert refused(await world.call("save_spot", JUNO, spot_id=spot(7), list_name="Fourth"), 3, 3)
    for number in (7, 8, 11, 13):
        assert not (await world.call("save_spot", JUNO, spot_id=spot(number), list_name="saved spots")).error
    assert refused(await world.call("save_spot", JUNO, spot_id=spot(14), list_name="With Lotte"), 15, 15)


async def test_other_riders_lists_are_not_there(world: ToolWorld) -> None:
    """A list of another rider's, by its name, is a new one; theirs stays as it was."""
    theirs = await lists(world, MIKA)
    made = await world.call("save_spot", TANE, spot_id=spot(1), list_name="Rain plan")
    assert made.data["listId"] not in {str(one["_id"]) for one in theirs}
    assert await lists(world, MIKA) == theirs


@pytest.mark.parametrize("number", [21, 22, 23, 24, 999])
async def test_spots_that_are_not_to_be_seen_cannot_be_saved(world: ToolWorld, number: int) -> None:
    """Nothing is written; its owner may save a private one."""
    before = await lists(world, TANE)
    assert (await world.call("save_spot", TANE, spot_id=spot(number))).code == "not_found"
    assert await lists(world, TANE) == before
    if number == 23:
        assert not (await world.call("save_spot", JUNO, spot_id=spot(number))).error


@pytest.mark.parametrize("stored", [None, "none", {"0": 1}, 7])
async def test_a_list_without_an_array_of_spots_gets_one(world: ToolWorld, stored: object) -> None:
    """Null and wrong types; missing too."""
    rows = [{"name": "Odd", "userId": TANE, "spotIds": stored}, {"name": "Bare", "userId": ObjectId(TANE)}]
    ids = (await world.database["spotlists"].insert_many(rows)).inserted_ids
    for at, name in enumerate(("odd", "bare")):
        assert not (await world.call("save_spot", TANE, spot_id=spot(1), list_name=name)).error
        assert (await world.row("spotlists", str(ids[at])))["spotIds"] == [ObjectId(spot(1))]


async def test_bad_arguments(world: ToolWorld) -> None:
    """No id, no words, another rider."""
    bad: list[dict[str, Any]] = [{}, {"spot_id": "1"}, {"spot_id": spot(1), "list_name": "  "}]
    bad += [{"spot_id": {"$ne": None}}, {"spot_id": spot(1), "user_id": MIKA}]
    for arguments in bad:
        assert (await world.call("save_spot", JUNO, **arguments)).code == "invalid_arguments"
