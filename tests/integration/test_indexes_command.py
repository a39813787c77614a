"""`python -m brain indexes`: shows, makes, and says what could not be made."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brain.knowledge.errors import EXIT_CONFIGURATION, EXIT_DIFFERENCES, EXIT_OK
from brain.trickbook.indexes import INDEXES, index_report
from tests.support.tool_world import LOTTE, ToolWorld

ROOT = Path(__file__).parents[2]


def brain(uri: str, name: str, *words: str) -> tuple[int, str, str]:
    """Run a command against a database."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ATLAS", "BRAIN", "WORKER"))}
    env |= {"ATLAS_URI": uri, "ATLAS_DB": name} if uri else {}
    done = subprocess.run(
        [sys.executable, "-m", "brain", *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


async def test_shown_made_and_there(world: ToolWorld, mongo_uri: str, database_name: str) -> None:
    """Missing is exit code 1; making them is 0; then all are there. One that this server cannot make is named."""
    code, out, _ = brain(mongo_uri, database_name, "indexes", "--json")
    told = json.loads(out)
    assert (code, told["ok"]) == (EXIT_DIFFERENCES, False)
    assert {index["state"] for index in told["indexes"]} == {"missing"}
    assert {index["collection"] for index in told["indexes"]} == set(INDEXES)
    code, out, _ = brain(mongo_uri, database_name, "indexes", "--ensure", "--json")
    states = {index["state"] for index in json.loads(out)["indexes"]}
    assert "missing" not in states
    assert states <= {"made", "refused"}
    rest = [index for index in json.loads(out)["indexes"] if index["state"] == "refused"]
    assert code == (EXIT_DIFFERENCES if rest else EXIT_OK)
    assert {index["collection"] for index in rest} <= {"tricklists"}  # `user`, by the embedded server alone
    assert all(index.state == "there" for index in await index_report(world.database, embedded=True))


async def test_a_table_for_people(world: ToolWorld, mongo_uri: str, database_name: str) -> None:
    """With what to do."""
    code, out, err = brain(mongo_uri, database_name, "indexes")
    assert code == EXIT_DIFFERENCES
    assert "trickipedia" in out
    assert out.endswith("python -m brain indexes --ensure\n")
    assert err == ""


async def test_data_that_breaks_an_index_is_said_and_stops_no_other(world: ToolWorld) -> None:
    """Two profiles of one rider and companion."""
    twins: list[dict[str, Any]] = [{"userId": LOTTE, "companionId": "x"} for _ in range(2)]
    await world.database["companion_profiles"].insert_many(twins)
    found = await index_report(world.database, embedded=True, make=True)
    (refused,) = [index for index in found if index.state == "refused"]
    assert (refused.collection, refused.keys) == ("companion_profiles", ("userId", "companionId", "unique"))
    assert "same keys" in (refused.reason or "")
    assert found[-1].state == "made" or found[-1] is refused


@pytest.mark.parametrize("words", [("indexes",), ("indexes", "--json")])
def test_no_address(words: tuple[str, ...]) -> None:
    """One line, and the exit code for settings."""
    code, out, err = brain("", "", *words)
    assert code == EXIT_CONFIGURATION
    assert "ATLAS_URI" in (out if "--json" in words else err)
