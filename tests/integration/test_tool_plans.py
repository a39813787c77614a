"""Every query of every tool is explained: none scans a collection where an index should serve."""

import os
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest
from pymongo import AsyncMongoClient, monitoring
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.tools import ALL_TOOLS
from brain.trickbook.indexes import INDEXES, ensure_indexes
from tests.support.tool_world import JUNO, MIKA, SilentKnowledge, ToolWorld, fill, sample_id

_READS: Final = ("find", "aggregate", "count", "distinct")

SCANS: Final[Mapping[tuple[str, str], str]] = {
    ("tricklists", "user"): "the embedded server cannot index a DBRef (brain.trickbook.indexes.NOT_EMBEDDED)",
    ("trickipedia", "difficulty"): "a pattern; the catalogue has some hundred tricks",
    ("trickipedia", "$limit"): "words inside of texts: so many at most (brain.trickbook.trick_search.MOST_SCANNED)",
}
"""Where a collection may be scanned: by which field of it, and why no index serves."""

CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("search_spots", {}),
    ("search_spots", {"state": "oregon"}),
    ("search_spots", {"state": "WA"}),
    ("search_spots", {"city": "Seattle, Washington"}),
    ("search_spots", {"city": "Portland, USA", "state": "OR"}),
    ("search_spots", {"query": "Tromso, Norway"}),
    ("search_spots", {"query": "plaza", "city": "seattle", "sport": "bmx"}),
    ("search_spots", {"query": "plaza nowhere"}),
    ("search_spots", {"query": "cedar flats skate plaza", "state": "washington"}),
    ("search_trickipedia", {"search": "tre flip"}),
    ("search_trickipedia", {"search": "how do I scoop a tre flip"}),
    ("search_trickipedia", {"category": "surf"}),
    ("search_trickipedia", {"category": "surf", "difficulty": "easy"}),
    ("get_user_tricklists", {}),
    ("create_tricklist", {"title": "Rails"}),
    ("add_trick_to_list", {"list_id": sample_id("73", 1), "trick_name": "Ollie"}),
    ("update_trick_status", {"trick_id": sample_id("74", 1), "status": "Complete"}),
    ("update_trick_status", {"trick_id": sample_id("74", 901), "status": "Complete"}),
    ("search_knowledge", {"query": "ollie"}),
    ("remember_user_info", {"fact": "Rides regular"}),
    ("save_spot", {"spot_id": sample_id("30", 12)}),
    ("spots_near_me", {"latitude": 47.6, "longitude": -122.3, "sport": "skate"}),
    ("spots_near_me", {}),
    ("spot_details", {"spot_id": sample_id("30", 1)}),
    ("find_videos", {"trick": "50-50"}),
    ("link_trick_to_spot", {"trick_id": sample_id("74", 1), "spot_id": sample_id("30", 1)}),
    ("link_trick_to_video", {"trick_id": sample_id("74", 1), "video_url": "https://clips.example.com/1"}),
    ("read_feed", {}),
    ("read_feed", {"whose": "homies", "sport": "surf"}),
    ("read_feed", {"whose": "everyone"}),
    ("my_progress", {}),
    ("recommend_next_trick", {}),
    ("recommend_next_trick", {"trick_name": "kickflip"}),
    ("recommend_next_trick", {"sport": "surf"}),
    ("learning_path", {"trick_name": "tre flip"}),
    ("find_events", {"sport": "bmx", "place": "berlin"}),
    ("find_events", {"place": "Seattle, WA, USA"}),
    ("find_events", {"latitude": 52.5, "longitude": 13.4}),
]


class Commands(monitoring.CommandListener):
    """Remembers what was read."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        """A command as it is sent, without the session's fields."""
        if event.command_name in _READS:
            own = (
                "lsid",
                "$clusterTime",
                "$db",
                "$readPreference",
                "readConcern",
                "txnNumber",
                "startTransaction",
                "autocommit",
            )
            self.seen.append({key: value for key, value in event.command.items() if key not in own})

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Nothing."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Nothing."""


@pytest.fixture
async def watched(mongo_uri: str, database_name: str) -> AsyncIterator[tuple[ToolWorld, Commands]]:
    """The sample data, the indexes, and who is asked what."""
    commands = Commands()
    client: AsyncMongoClient[Row] = AsyncMongoClient(mongo_uri, tz_aware=True, event_listeners=[commands])
    async with client:
        database: AsyncDatabase[Row] = client[database_name]
        await fill(database)
        await ensure_indexes(database, embedded="TEST_ATLAS_URI" not in os.environ)
        yield ToolWorld(database, knowledge=SilentKnowledge()), commands


@pytest.mark.parametrize(("name", "arguments"), CALLS)
async def test_no_query_scans_a_collection(
    watched: tuple[ToolWorld, Commands], name: str, arguments: dict[str, Any]
) -> None:
    """The plan of each command that the tool sends."""
    world, commands = watched
    await world.call(name, JUNO if name == "read_feed" else MIKA, **arguments)
    seen, commands.seen = commands.seen, []
    assert seen or name == "search_knowledge"  # it reads through the search engines alone
    for command in seen:
        plan = str(await world.database.command({"explain": command, "verbosity": "queryPlanner"}))
        collection, condition = command.get("find") or command["aggregate"], _condition(command)
        if not any((collection, field) in SCANS for field in condition):
            assert "COLLSCAN" not in plan, command
            assert "IXSCAN" in plan, command


def _condition(command: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the database is asked to find first."""
    return command["filter"] if "find" in command else command["pipeline"][0].get("$match", command["pipeline"][0])


async def test_ensuring_twice_changes_nothing(watched: tuple[ToolWorld, Commands]) -> None:
    """Also where the backend has made one under a name of its own."""
    world, _ = watched
    await world.database["spots"].drop_index("userId_1")
    await world.database["spots"].create_index("userId", name="theirs")
    before = {name: await _names(world, name) for name in INDEXES}
    await ensure_indexes(world.database, embedded="TEST_ATLAS_URI" not in os.environ)
    assert {name: await _names(world, name) for name in INDEXES} == before
    assert "theirs" in before["spots"]


async def _names(world: ToolWorld, collection: str) -> set[str]:
    return {index["name"] async for index in await world.database[collection].list_indexes()}


def test_every_tool_is_explained() -> None:
    """One without a plan fails here."""
    assert {name for name, _ in CALLS} == {tool.name for tool in ALL_TOOLS}
