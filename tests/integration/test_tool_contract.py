"""What every shipped tool promises, whatever it is about: its result's schema, its size, its cards, its repeats.

A tool that is added to `ALL_TOOLS` needs an example here.
"""

import json
from dataclasses import replace
from typing import Any, Final

import jsonschema
import pytest
from bson import json_util

from brain.cards import CARD_TYPES
from brain.once import JOURNAL
from brain.registry import LEAST_BYTES
from brain.schema import mcp
from brain.tool import AnyTool
from brain.tools import ALL_TOOLS
from tests.support.tool_world import MIKA, Answer, ToolWorld, sample_id

LIST, TRICK, SPOT = sample_id("73", 1), sample_id("74", 4), sample_id("30", 1)

EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "search_spots": {"query": "bowl"},
    "search_trickipedia": {"search": "kickflip"},
    "get_user_tricklists": {},
    "create_tricklist": {"title": "Rainy days"},
    "add_trick_to_list": {"trick_name": "Heelflip", "list_id": LIST},
    "update_trick_status": {"trick_id": TRICK, "status": "Complete"},
    "search_knowledge": {"query": "how do I kickflip"},
    "remember_user_info": {"user_name": "Mika", "sports": ["bmx"], "fact": "Rides at night"},
    "save_spot": {"spot_id": sample_id("30", 2)},
    "spots_near_me": {"latitude": 45.52, "longitude": -122.66},
    "spot_details": {"spot_id": SPOT},
    "find_videos": {"trick": "kickflip"},
    "link_trick_to_spot": {"trick_id": TRICK, "spot_id": SPOT},
    "link_trick_to_video": {"trick_id": TRICK, "video_url": "https://video.example.com/1"},
    "read_feed": {"whose": "everyone"},
    "my_progress": {},
    "recommend_next_trick": {},
    "learning_path": {"trick_name": "Tre Flip"},
    "find_events": {},
}
"""A call that finds or does something for Mika, over the sample."""

READING: Final = [each for each in ALL_TOOLS if each.effect == "read"]
WRITING: Final = [each for each in ALL_TOOLS if each.effect == "write"]


def test_every_tool_has_an_example() -> None:
    """So that what follows is shown for it."""
    assert set(EXAMPLES) == {each.name for each in ALL_TOOLS}


async def call(world: ToolWorld, shipped: AnyTool) -> Answer:
    """The example."""
    return await world.call(shipped.name, MIKA, **EXAMPLES[shipped.name])


async def documents(world: ToolWorld) -> dict[str, str]:
    """Every document but the journal's, by collection and id; without the time of its last change."""
    names = [name for name in await world.database.list_collection_names() if name != JOURNAL]
    rows = {f"{name}/{row['_id']}": row for name in names async for row in world.database[name].find({})}
    return {key: json_util.dumps(row | {"updatedAt": None}, sort_keys=True) for key, row in rows.items()}


def check(shipped: AnyTool, answer: Answer) -> None:
    """The result as MCP promises it to clients, the cards as the app draws them."""
    assert answer.code is None, (shipped.name, answer.text)
    checker: Any = jsonschema.Draft202012Validator(mcp(shipped)["outputSchema"])
    checker.validate(answer.data)
    assert "null" not in answer.text, (shipped.name, "what is absent is left out")
    assert answer.text.isascii()
    assert len(answer.text) <= shipped.most_bytes
    for card in answer.cards:
        assert card.type in CARD_TYPES
        assert None not in card.data.values()
        json.dumps(card.data, allow_nan=False)


async def check_shortened(world: ToolWorld, shipped: AnyTool) -> None:
    """However little room there is, a valid part that says so, or a clear refusal."""
    world.tools = [replace(shipped, most_bytes=LEAST_BYTES)]
    answer = await call(world, shipped)
    world.tools = ALL_TOOLS
    assert len(answer.text) <= LEAST_BYTES
    if answer.code is None:
        checker: Any = jsonschema.Draft202012Validator(mcp(shipped)["outputSchema"])
        checker.validate(answer.data)
    else:
        assert answer.code == "limit_reached", (shipped.name, answer.text)


async def test_what_reads_keeps_its_promises_and_writes_nothing(knowing: ToolWorld) -> None:
    """`readOnlyHint`, `outputSchema`, size and cards."""
    before = await documents(knowing)
    for shipped in READING:
        check(shipped, await call(knowing, shipped))
        await check_shortened(knowing, shipped)
    assert await documents(knowing) == before


@pytest.mark.parametrize("shipped", WRITING, ids=lambda each: each.name)
async def test_what_fails_at_the_end_has_written_nothing(world: ToolWorld, shipped: AnyTool) -> None:
    """Every operation belongs to the transaction: one that did not pass the session on would stay."""

    def fail(_result: object) -> list[str]:
        raise ValueError

    before = await documents(world)
    world.tools = [replace(shipped, links=fail)]
    assert (await call(world, shipped)).code == "internal"
    assert await documents(world) == before


@pytest.mark.parametrize("shipped", WRITING, ids=lambda each: each.name)
async def test_what_writes_keeps_its_promises_and_writes_once(world: ToolWorld, shipped: AnyTool) -> None:
    """In a repeated turn by the journal; in another turn by itself, where it is said to be idempotent."""
    before = await documents(world)
    world.turn = "one"
    first = await call(world, shipped)
    check(shipped, first)
    written = await documents(world)
    assert written != before, first.text
    assert (await call(world, shipped)).text == first.text
    assert await documents(world) == written
    if shipped.idempotent:
        for world.turn in ("another", "a third"):
            check(shipped, await call(world, shipped))
        world.turn = "short"
        await check_shortened(world, shipped)
        assert await documents(world) == written
