"""remember_user_info over the sample, with the traps of old."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from bson import ObjectId

from brain.knowledge.connect import Row
from brain.registry import Registry
from brain.tool import ToolContext
from brain.tools import ALL_TOOLS
from brain.trickbook.facts import MOST_FACTS
from tests.support.tool_world import BOT, JUNO, LOTTE, MIKA, NOW, TANE, ToolWorld

WREN = f"{10}{8:022d}"
"""The other companion."""


async def profile(world: ToolWorld, rider: str, companion: str = BOT) -> Row:
    """The stored profile, or an empty one."""
    found = await world.database["companion_profiles"].find_one({"userId": rider, "companionId": companion})
    return found or {}


async def test_a_first_memory_has_stage_and_count(world: ToolWorld) -> None:
    """The old upsert left them out; both ids are strings, the count is an int32."""
    found = await world.call("remember_user_info", LOTTE, user_name="Lo", sports=["Skate", "surf", "skateboarding"])
    assert found.data["saved"] == ["name", "sports"]
    stored = await profile(world, LOTTE)
    assert (stored["relationshipStage"], stored["interactionCount"]) == ("stranger", 0)
    assert stored["createdAt"] == NOW
    assert stored["memory"] == {"userName": "Lo"}
    assert stored["traits"] == {"sports": ["skateboarding", "surfing"]}


async def test_the_speaking_companion_remembers_and_no_other(world: ToolWorld) -> None:
    """The old tool wrote to one hard-coded bot."""
    before = await profile(world, MIKA, BOT)
    context = ToolContext(world.database, world.knowledge, lambda: NOW, user_id=MIKA, companion_id=WREN, turn_id="t")
    outcome = await Registry(ALL_TOOLS).call("remember_user_info", {"fact": "Broke a wrist in May"}, context)
    assert outcome.ok, outcome.text
    assert await profile(world, MIKA, BOT) == before
    assert (await profile(world, MIKA, WREN))["memory"]["knownFacts"] == [
        "Wants to learn a tailwhip",  # was one string
        "Broke a wrist in May",
    ]
    nobody = replace(context, companion_id=None, turn_id="u")
    assert not (await Registry(ALL_TOOLS).call("remember_user_info", {"fact": "x y z"}, nobody)).ok


async def test_a_fact_alone_leaves_everything_else_as_it_was(world: ToolWorld) -> None:
    """The old call sent an empty `$set`; stage, count and traits stay."""
    before = await profile(world, MIKA)
    await world.call("remember_user_info", MIKA, fact="Has a bowl at home")
    after = await profile(world, MIKA)
    assert after.pop("memory") == {
        **before.pop("memory"),
        "knownFacts": ["Rides regular", "Afraid of handrails, fine with boxes", "Has a bowl at home"],
    }
    assert after == before


async def test_facts_are_kept_once_and_not_without_end(world: ToolWorld) -> None:
    """The same fact in other words stands once; thirty stand at most, the oldest are forgotten."""
    for fact in ("Rides goofy", "rides GOOFY!", "He rides goofy"):
        await world.call("remember_user_info", JUNO, fact=fact)
    assert len((await profile(world, JUNO))["memory"]["knownFacts"]) == 1
    words = [f"w{number}a w{number}b w{number}c" for number in range(MOST_FACTS + 5)]
    for fact in words:
        await world.call("remember_user_info", JUNO, fact=fact)
    assert (await profile(world, JUNO))["memory"]["knownFacts"] == words[5:]
    assert (await profile(world, JUNO))["memory"]["userName"] == "Juno"


async def test_what_is_told_at_the_same_time_is_all_kept(world: ToolWorld) -> None:
    """In one profile, also where nobody has made the unique index yet."""
    told: list[dict[str, Any]] = [{"user_name": "Lo"}, {"fact": "Rides goofy"}, {"sports": ["bmx"]}]
    answers = await asyncio.gather(*(world.call("remember_user_info", LOTTE, **one) for one in told))
    assert [answer.error for answer in answers] == [{}, {}, {}]
    (stored,) = await world.database["companion_profiles"].find({"userId": LOTTE}).to_list()
    assert stored["memory"] == {"userName": "Lo", "knownFacts": ["Rides goofy"]}
    assert stored["traits"] == {"sports": ["bmx"]}


@pytest.mark.parametrize(
    "memory", [None, "gone", 5, [], {"knownFacts": {"0": "old"}}, {"knownFacts": [None, 5, "old"]}]
)
async def test_a_memory_of_any_type_can_be_added_to(world: ToolWorld, memory: object) -> None:
    """The app PUTs what it likes: no shape of it makes the write fail."""
    whose = {"userId": TANE, "companionId": BOT}
    await world.database["companion_profiles"].update_one(whose, {"$set": {"memory": memory, "traits": memory}})
    found = await world.call("remember_user_info", TANE, fact="Surfs at dawn", sports=["surf"], user_name="T")
    assert found.error == {}
    stored = await profile(world, TANE)
    assert stored["memory"]["knownFacts"][-1] == "Surfs at dawn"
    assert stored["memory"]["userName"] == "T"
    assert stored["traits"]["sports"] == ["surfing"]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"user_name": ""},
        {"fact": " \u200b "},
        {"sports": []},
        {"sports": ["", " "]},
        {"fact": "x" * 201},
        {"user_name": "x" * 61},
        {"sports": ["x"] * 11},
        {"fact": {"$set": 1}},
        {"fact": "x", "companion_id": WREN},
    ],
    ids=json.dumps,
)
async def test_nothing_to_remember_is_refused(world: ToolWorld, odd: dict[str, Any]) -> None:
    """With a sentence, and nothing is written."""
    before = await profile(world, MIKA)
    assert (await world.call("remember_user_info", MIKA, **odd)).code == "invalid_arguments"
    assert await profile(world, MIKA) == before


async def test_nobody_is_remembered_without_signing_in(world: ToolWorld) -> None:
    """Who it is comes from the caller alone."""
    assert (await world.call("remember_user_info", None, fact="x y z")).code == "not_signed_in"


async def test_a_rider_in_capitals_is_the_same_rider(world: ToolWorld) -> None:
    """Hex ids in either case are one id."""
    rider = str(ObjectId("64b0000000000000000000aa"))
    await world.call("remember_user_info", rider.upper(), fact="First things first")
    await world.call("remember_user_info", rider, fact="Second helpings always")
    assert len((await profile(world, rider))["memory"]["knownFacts"]) == 2
    assert len(await world.database["companion_profiles"].find({"userId": rider}).to_list()) == 1
