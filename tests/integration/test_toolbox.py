"""The toolbox makes the tools' indexes: in an embedded database at once, elsewhere beside a door that lives long."""

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from brain.config import PREFIX, BrainSettings
from brain.knowledge.connect import Row
from brain.knowledge.settings import load
from brain.toolbox import toolbox
from brain.trickbook.indexes import index_report
from tests.support.processes import Finished, command, environment, eventually
from tests.support.tool_world import LOTTE, ToolWorld
from worker.embedded import EmbeddedServer


@pytest.fixture
def settings(mongo_uri: str, database_name: str) -> BrainSettings:
    """Of a door with an address."""
    return load(BrainSettings, {"ATLAS_URI": mongo_uri, "ATLAS_DB": database_name}, PREFIX)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An embedded database of this test's own."""
    server = EmbeddedServer.start_or_join(tmp_path)
    yield tmp_path
    server.close()


async def test_a_door_that_lives_long_makes_them_beside_its_work(
    world: ToolWorld, settings: BrainSettings, mongo_uri: str, database_name: str
) -> None:
    """A command that calls one tool makes none."""
    async with toolbox(settings, None) as tools:
        assert {index.state for index in await index_report(tools.database, embedded=True)} == {"missing"}
    env = environment(ATLAS_URI=mongo_uri, ATLAS_DB=database_name)

    def made() -> bool:
        told = command("indexes", "--json", env=env, module="brain").value["indexes"]
        missing = {index["collection"] for index in told if index["state"] == "missing"}
        return missing <= {"tricklists"}  # one of theirs the embedded server cannot make

    async with toolbox(settings, None, follow=True):
        await asyncio.to_thread(eventually, made, "every index")


async def test_what_cannot_be_made_is_logged(
    world: ToolWorld, settings: BrainSettings, caplog: pytest.LogCaptureFixture
) -> None:
    """Two profiles of one rider and companion: the door serves all the same."""
    twins: list[Row] = [{"userId": LOTTE, "companionId": "x"} for _ in range(2)]
    await world.database["companion_profiles"].insert_many(twins)
    with caplog.at_level(logging.WARNING):
        async with toolbox(settings, None, follow=True) as tools:
            await asyncio.to_thread(eventually, lambda: caplog.records, "the line in the log")
            assert (await tools.registry.call("search_spots", '{"query": "burnside"}', tools.context())).ok
    (record,) = caplog.records
    assert vars(record)["action"] == "tool_indexes"
    assert "same keys" in record.getMessage()


def test_an_embedded_database_has_them_after_the_first_call(folder: Path) -> None:
    """Until then `indexes` says how they are made, in the same database."""

    def brain(*words: str) -> Finished:
        return command(*words, "--data", str(folder), env=environment(), module="brain")

    before = brain("indexes")
    assert (before.code, before.out.splitlines()[-1].endswith(f"--ensure --data {folder}")) == (1, True), before
    assert brain("call", "search_spots", '{"query": "burnside"}').code == 0
    after = brain("indexes", "--json")
    assert (after.code, json.loads(after.out)["ok"]) == (0, True)
