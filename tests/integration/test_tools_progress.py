"""Progress, what to learn next, and the way to a trick, for riders whose lists are of every age."""

from typing import Any

import pytest
from bson import DBRef, ObjectId

from tests.support.tool_world import JUNO, LOTTE, MIKA, NOW, ORIGIN, PRIYA, SAM, TANE, ToolWorld, sample_id

SKATE, SNOW, SURF = "5a", "5b", "5d"


def names(hits: list[dict[str, Any]]) -> list[str]:
    """The names of tricks."""
    return [hit["name"] for hit in hits]


async def give(world: ToolWorld, rider: str, *tricks: str, checked: object = "Completed") -> None:
    """A list with these tricks."""
    list_id = ObjectId()
    rows = [
        {"_id": ObjectId(), "name": name, "list_id": str(list_id), "checked": checked, "createdAt": NOW}
        for name in tricks
    ]
    entries = [{"_id": row["_id"]} for row in rows]
    owner = DBRef("users", rider)
    await world.database["tricks"].insert_many(rows)
    await world.database["tricklists"].insert_one({"_id": list_id, "name": "L", "user": owner, "tricks": entries})


@pytest.mark.parametrize(
    ("rider", "figures", "landed"),
    [
        (MIKA, (2, 6, 3, 1, 2), ["Boardslide", "Kickflip", "Backside 180"]),
        (JUNO, (1, 4, 1, 0, 3), ["Ollie"]),
        (TANE, (1, 2, 1, 0, 1), ["Cutback"]),
        (LOTTE, (1, 2, 1, 1, 0), ["Bunny Hop"]),
        (PRIYA, (2, 2, 1, 0, 1), ["Foot Brake"]),
        (SAM, (0, 0, 0, 0, 0), []),
    ],
)
async def test_figures(world: ToolWorld, rider: str, figures: tuple[int, ...], landed: list[str]) -> None:
    """From `checked` in every spelling, never from `completed`; the latest landed trick first."""
    told = (await world.call("my_progress", rider)).data
    assert tuple(told[key] for key in ("totalLists", "totalTricks", "landed", "learning", "notStarted")) == figures
    assert names(told["landedTricks"]) == landed
    assert ("message" in told) == (rider == SAM)


async def test_lists_with_their_shares(world: ToolWorld) -> None:
    """The newest list first; an empty one is at 0; a stored counter is not believed."""
    await world.database["tricklists"].update_many({}, {"$set": {"completed": 99}})
    told = (await world.call("my_progress", PRIYA)).data
    assert [(one["name"], one["totalTricks"], one["landed"], one["progress"]) for one in told["lists"]] == [
        ("Stops and slides", 2, 1, 50),
        ("Someday", 0, 0, 0),
    ]
    assert told["landedTricks"][0] == {
        "id": sample_id("74", 14),
        "name": "Foot Brake",
        "listName": "Stops and slides",
        "since": "2026-06-05T12:00:00Z",
    }
    assert "Kickflip" not in str(told)  # stands in her list's array and is Mika's


async def test_next_steps_of_a_named_trick(world: ToolWorld) -> None:
    """In the editors' order, at most four, with the ids that a card needs; none that is landed."""
    told = await world.call("recommend_next_trick", SAM, trick_name="kickflip")
    assert (told.data["basis"], told.data["source"]) == ("next_steps", "trickipedia")
    assert names(told.data["recommendations"]) == ["Varial Kickflip", "Hardflip"]
    first = told.data["recommendations"][0]
    assert (first["after"], first["reason"]) == ("Kickflip", "Scoop the tail while you flick.")
    assert first["webUrl"] == f"{ORIGIN}/trickipedia/skateboarding/varial-kickflip"
    assert [card.data["_id"] for card in told.cards] == [hit["id"] for hit in told.data["recommendations"]]
    assert (
        len((await world.call("recommend_next_trick", SAM, trick_name="ollie", sport="skate")).data["recommendations"])
        == 4
    )
    await give(world, SAM, "varial kickflip")
    told = await world.call("recommend_next_trick", SAM, trick_name="kickflip")
    assert names(told.data["recommendations"]) == ["Hardflip"]


async def test_a_name_means_the_riders_sport(world: ToolWorld) -> None:
    """The tailwhip of Lotte is the BMX one's or the scooter's; asked for a sport, that sport's."""
    for sport in ("bmx", "scooter"):
        told = await world.call("recommend_next_trick", LOTTE, trick_name="bunny hop", sport=sport)
        assert {hit["sport"] for hit in told.data["recommendations"]} == {sport}
    told = await world.call("recommend_next_trick", TANE, trick_name="ollie")
    assert {hit["sport"] for hit in told.data["recommendations"]} <= {"skateboarding", "snowboarding"}
    told = await world.call("recommend_next_trick", JUNO, trick_name="ollie")
    assert {hit["sport"] for hit in told.data["recommendations"]} == {"skateboarding"}


@pytest.mark.parametrize("checked", ["Completed", "Complete", "Landed", "Mastered", "completed", True])
async def test_from_what_is_landed_in_every_spelling(world: ToolWorld, checked: object) -> None:
    """Also a name with parentheses, and one spelt by an alias."""
    await give(world, SAM, "Varial Kickflip", checked=checked)
    told = await world.call("recommend_next_trick", SAM)
    assert told.data["basis"] == "landed_tricks"
    assert names(told.data["recommendations"]) == ["Tre Flip (360 Flip)"]
    await give(world, SAM, "Tre Flip (360 Flip)")
    told = await world.call("recommend_next_trick", SAM)
    assert told.data["basis"] == "beginner_tricks"  # it matches itself, and nothing follows


async def test_what_is_on_a_list_is_not_recommended(world: ToolWorld) -> None:
    """Landed or not, under whatever name."""
    await give(world, SAM, "varial kickflip")
    await give(world, SAM, "360 flip", checked="To Do")
    told = await world.call("recommend_next_trick", SAM)
    assert told.data["basis"] == "beginner_tricks"
    assert "Tre Flip" not in told.text


async def test_what_is_ready_comes_first(world: ToolWorld) -> None:
    """Juno has landed the ollie alone: at most five of its next steps, none whose other prerequisites are missing."""
    told = await world.call("recommend_next_trick", JUNO)
    assert told.data["basis"] == "landed_tricks"
    assert len(told.data["recommendations"]) == 5
    assert {hit["after"] for hit in told.data["recommendations"]} == {"Ollie"}


async def test_beginners_begin_somewhere(world: ToolWorld) -> None:
    """Difficulty by its loose words, nothing on a list, what needs nothing before it first; a note says why."""
    told = await world.call("recommend_next_trick", SAM, sport="surf")
    assert told.data["basis"] == "beginner_tricks"
    assert names(told.data["recommendations"]) == ["Pop Up", "Turtle Roll", "Trimming"]
    assert told.data["note"] == "nothing is landed yet"
    await give(world, SAM, "Pop Up", checked="To Do")
    told = await world.call("recommend_next_trick", SAM, sport="surf")
    assert names(told.data["recommendations"]) == ["Turtle Roll", "Trimming"]
    told = await world.call("recommend_next_trick", SAM, sport="scooter")
    assert "Manual" in names(told.data["recommendations"])  # "beginner (1)"
    assert "ask which sport" in (await world.call("recommend_next_trick", SAM)).data["note"]


async def test_who_is_not_signed_in_can_ask_for_a_trick_or_a_sport(world: ToolWorld) -> None:
    """Nothing of a rider is needed for those two; without either there is nothing to go by."""
    told = await world.call("recommend_next_trick", trick_name="kickflip")
    assert (told.data["basis"], told.data.get("note")) == ("next_steps", None)
    assert names(told.data["recommendations"]) == ["Varial Kickflip", "Hardflip"]
    told = await world.call("recommend_next_trick", sport="surf")
    assert (told.data["basis"], names(told.data["recommendations"])[0]) == ("beginner_tricks", "Pop Up")
    assert told.data["note"] == "nobody is signed in, so what they have landed is not known"
    told = await world.call("recommend_next_trick")
    assert (told.code, "a trick or a sport" in told.error["message"]) == ("not_signed_in", True)


async def test_an_unknown_trick_is_said_to_be_unknown(world: ToolWorld) -> None:
    """And the answer follows from what is landed."""
    told = await world.call("recommend_next_trick", JUNO, trick_name="zorp (.*")
    assert told.data["basis"] == "landed_tricks"
    assert "not in TrickBook" in told.data["note"]


HIDDEN = ("Impossible", "Air Reverse")
"""Targets of next steps that are draft (from the ollie) or disputed (from the pop up)."""


@pytest.mark.parametrize(
    ("trick", "sport"), [("ollie", "skateboarding"), ("pop up", "surfing"), ("impossible", "skateboarding")]
)
async def test_hidden_and_dangling_edges_lead_nowhere(world: ToolWorld, trick: str, sport: str) -> None:
    """Draft, disputed and rejected edges are nonsense on purpose; one leads to a trick that is gone."""
    told = await world.call("recommend_next_trick", SAM, trick_name=trick, sport=sport)
    assert not {*names(told.data["recommendations"])} & {*HIDDEN}
    assert "launch an air reverse" not in told.text


async def test_no_edge_leads_into_another_sport(world: ToolWorld) -> None:
    """The editors' rules forbid it; the data may hold one all the same."""
    edge = {"trickId": ObjectId(sample_id(SURF, 7)), "research": {"status": "published"}, "order": 0}
    await world.database["trickipedia"].update_one(
        {"_id": ObjectId(sample_id(SKATE, 11))}, {"$push": {"progression.nextSteps": edge}}
    )
    told = await world.call("recommend_next_trick", SAM, trick_name="kickflip")
    assert names(told.data["recommendations"]) == ["Varial Kickflip", "Hardflip"]


async def test_the_way_to_a_trick(world: ToolWorld) -> None:
    """Prerequisites first, the trick last; a rejected edge (to the drop in) is none; a landed trick covers its own."""
    told = (await world.call("learning_path", MIKA, trick_name="tre flip")).data
    assert [(step["name"], step["depth"], step["landed"], step.get("covered", False)) for step in told["steps"]] == [
        ("Kick Turn", 3, False, True),
        ("Ollie", 2, False, True),
        ("Pop Shove-it", 2, False, True),
        ("Kickflip", 1, True, False),
        ("Varial Kickflip", 1, False, False),
        ("Tre Flip (360 Flip)", 0, False, False),
    ]
    assert (told["trick"], told["sport"], told["total"], told["landed"]) == (
        "Tre Flip (360 Flip)",
        "skateboarding",
        6,
        1,
    )
    assert told["next"] == "Varial Kickflip"
    assert (told["steps"][1]["neededFor"], told["steps"][1]["strength"]) == ("Kickflip", "required")
    assert "neededFor" not in told["steps"][-1]


async def test_the_way_for_somebody_unknown(world: ToolWorld) -> None:
    """Without a rider nothing is landed; a name in two sports is told, and means the rider's own when there is one."""
    told = await world.call("learning_path", trick_name="air reverse")
    assert told.data["next"] == "Pop Up"
    assert [card.data["name"] for card in told.cards] == ["Pop Up"]
    several = (await world.call("learning_path", trick_name="lipslide")).data
    (other,) = {"skateboarding", "snowboarding"} - {several["sport"]}
    assert several["note"] == f"there is a trick of this name in {other} too; name the sport for it"
    assert (await world.call("learning_path", JUNO, trick_name="lipslide")).data["sport"] == "skateboarding"
    await world.database["users"].update_one({"_id": ObjectId(JUNO)}, {"$set": {"sports": "Snowboard"}})
    assert (await world.call("learning_path", JUNO, trick_name="lipslide")).data["sport"] == "snowboarding"
    snow = await world.call("learning_path", trick_name="lipslide", sport="snow")
    assert (snow.data["sport"], snow.data["steps"][-1]["id"]) == ("snowboarding", sample_id(SNOW, 27))
    assert (await world.call("learning_path", trick_name="zorp")).code == "not_found"


async def test_circles_other_sports_and_odd_edges(world: ToolWorld) -> None:
    """A circle is cut, an edge into another sport is none, edges of any type break nothing; four levels and no more."""
    ids = [ObjectId() for _ in range(8)]
    fine = {"status": "reviewed"}

    def trick(at: int, *needs: object, category: object = "BMX") -> dict[str, Any]:
        edges = [{"trickId": one, "research": fine} if isinstance(one, ObjectId | str) else one for one in needs]
        return {"_id": ids[at], "name": f"Zed {at}", "category": category, "progression": {"prerequisites": edges}}

    rows = [
        trick(
            0, ids[1], ids[0], "not an id", None, 7, [], {"trickId": ids[7]}, {"trickId": ids[7], "research": "draft"}
        ),
        trick(1, str(ids[2])),
        trick(2, ids[3], ids[0]),
        trick(3, ids[4]),
        trick(4, ids[5]),
        trick(5),
        trick(6, category="Surfing"),
        trick(7),
    ]
    rows[1]["progression"]["prerequisites"].append({"trickId": ids[6], "research": fine})
    await world.database["trickipedia"].insert_many([*rows, {"name": "Zed 9", "category": None, "progression": [1]}])
    told = await world.call("learning_path", trick_name="zed 0")
    assert names(told.data["steps"]) == ["Zed 4", "Zed 3", "Zed 2", "Zed 1", "Zed 0"]
    assert names((await world.call("learning_path", trick_name="zed 2")).data["steps"])[-1] == "Zed 2"
    assert names((await world.call("learning_path", trick_name="zed 9")).data["steps"]) == ["Zed 9"]


async def test_bad_arguments(world: ToolWorld) -> None:
    """An unknown name, blank words, nobody."""
    assert (await world.call("my_progress", MIKA, user_id=JUNO)).code == "invalid_arguments"
    assert (await world.call("learning_path", trick_name=" ")).code == "invalid_arguments"
    for name in ("my_progress", "recommend_next_trick"):
        assert (await world.call(name)).code == "not_signed_in"
