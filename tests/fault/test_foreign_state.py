"""What another version, another database or a hand left in the checkpoints ends a start with 78 and says what to do."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.crashes import Store, trick
from tests.support.processes import PATIENCE, command, worker
from worker.errors import EXIT_CONFIGURATION

pytestmark = pytest.mark.slow

HARMS: list[tuple[str, dict[str, Any], str]] = [
    ("stream", {"$set": {"format": 2}}, "run the newer version, or remove that row to scan everything again"),
    ("stream", {"$set": {"database": "elsewhere"}}, "belongs to another database"),
    ("stream", {"$set": {"at": "noon"}}, "damaged: remove that row to scan everything again"),
    (
        "scan/trickipedia",
        {"$set": {"format": 2}},
        "run the newer version, or remove that row to scan that source again",
    ),
    ("scan/trickipedia", {"$unset": {"reason": ""}}, "damaged: remove it to scan that source again"),
    ("scan/trickipedia", {"$set": {"after": "x", "done": False}}, "damaged: remove it to scan that source again"),
]
"""A row, what was done to it, and what is said."""


def test_a_start_is_refused_and_nothing_written_over(tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """78 is for a person: a supervisor does not start it again and again. The row removed, all comes right."""
    env["WORKER_SOURCES"] = "trickipedia"
    rows = database.freshness_checkpoints
    database.trickipedia.insert_one(trick("Ollie", "Pop."))
    with worker(tmp_path, env) as running:
        running.until_ready()
        assert running.stop() == 0
    for name, harm, said in HARMS:
        whole = rows.find_one({"_id": name}) or {}
        rows.update_one({"_id": name}, harm)
        harmed = rows.find_one({"_id": name})
        with worker(tmp_path, env) as running:
            assert running.child.wait(PATIENCE) == EXIT_CONFIGURATION, running.log.read_text()
            (end,) = [line["message"] for line in running.lines() if line["level"] == "critical"]
            assert said in end
        assert rows.find_one({"_id": name}) == harmed
        rows.replace_one({"_id": name}, whole)
    rows.update_one({"_id": "scan/trickipedia"}, {"$set": {"format": 2}})
    refused = command("backfill", env=env)
    assert refused.code == EXIT_CONFIGURATION
    assert "scan that source again" in refused.err
    rows.delete_one({"_id": "scan/trickipedia"})
    with worker(tmp_path, env) as running:
        running.until_ready()
        assert running.stop() == 0
