"""kill -9 at every place of a change of generations: the next leader has it done, and both hold what the documents say.

The command waits all the while; it gets its answer from the next leader.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fault.test_crash_matrix import MATRIX
from tests.support.crashes import Figures, Record, Store, doomed, show, timed, trick, until_killed, until_leading
from tests.support.oracle import CLEAN, Oracle
from tests.support.processes import PATIENCE, ROOT, Embedder, command, eventually, worker

pytestmark = pytest.mark.slow

OTHER: Final = "other/embed"  # as wide as the first model, with vectors of its own
ACTS: Final = {
    "build": ("--model", OTHER, "--dimensions", "1536"),
    "switch": (),
    "rollback": (),
    "drop": ("--yes",),
}


@pytest.mark.parametrize("place", MATRIX["generations"])
def test_a_kill_amid_a_change_of_generations(
    place: str, tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder, record_property: Record
) -> None:
    """Build, switch, roll back, drop, each with a leader that dies there, and an edit that only the next one sees."""
    figures = Figures()
    database.trickipedia.insert_many([trick(f"Trick {number}", f"Says {number}.") for number in range(8)])
    with worker(tmp_path, env) as running:
        until_leading(running)
        assert running.stop() == 0
    for turn, (act, options) in enumerate(ACTS.items(), 1):
        if place == "generation_dropped" and act != "drop":
            assert command("pin", act, *options, "--json", env=env).code == 0
            continue
        armed = tmp_path / f"armed-{place}-{act}"
        with doomed(tmp_path, env, place, armed) as running:
            until_leading(running)
            armed.touch()
            asked = [sys.executable, "-m", "worker", "pin", act, *options, "--json"]
            with subprocess.Popen(asked, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True) as asking:
                until_killed(running, place)
                figures.kills += 1
                database.trickipedia.update_one({"name": "Trick 0"}, {"$set": {"description": f"Turn {turn}."}})
                with worker(tmp_path, env) as next_one:
                    figures.caught_up.append(timed(lambda: until_leading(next_one, beside_a_command=True)))
                    answer, _ = asking.communicate(timeout=PATIENCE * 2)
                    assert asking.returncode == 0, (act, answer)
                    _until_said(database, f"Turn {turn}.")
                    assert next_one.stop() == 0
    with Oracle(env) as oracle:
        assert oracle.differences() == CLEAN
    row = database.knowledge_pins.find_one({"_id": "active"})
    assert row is not None
    assert (row["collection"], row.get("beside"), row["leaving"]) == ("knowledge_chunks", None, [])
    left = [name for name in database.list_collection_names() if name.startswith("knowledge_chunks_")]
    assert left == [], "what was dropped is gone"
    show(record_property, figures.line("pin"))


def _until_said(database: Store, words: str) -> None:
    """Wait until every live generation says it."""

    def said() -> bool:
        row: dict[str, Any] = database.knowledge_pins.find_one({"_id": "active"}) or {}
        live = [row["collection"], *([row["beside"]["collection"]] if row.get("beside") else [])]
        return all(database[name].count_documents({"text": {"$regex": f"{words}$"}}) == 1 for name in live)

    eventually(said, words)
