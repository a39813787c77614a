"""There is no half a worker (K6): whichever of its tasks dies of a bug, the process ends with 70 and says which.

The tasks are not written down here: a worker at work is asked what it runs, so that a new one is not forgotten.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest
from pymongo import MongoClient

from tests.support.crashes import Record, show
from tests.support.processes import PATIENCE, eventually, worker
from worker.errors import EXIT_BUG

pytestmark = pytest.mark.slow

DYING: Final = str(Path("tests") / "fault" / "dying_main.py")
AT_LEAST: Final = {
    "_serve",
    "beat",
    "announce",
    "watch",
    "keep_docs",
    "Canary.watch",
    "Tail.follow",
    "ScanLoop.scan_for_ever",
    "ScanLoop.remove_for_ever",
    "Runner.pump",
    "Duties.keep_checkpoint",
    "Duties.keep_lease",
    "Duties.pay_debts",
    "Duties.end_what_expires",
    "Duties.rescan_by_the_clock",
    "Duties.serve_requests",
}
"""Without these the worker would have been asked too early."""


def test_any_task_that_dies_ends_the_process(
    tmp_path: Path, env: dict[str, str], mongo_uri: str, database_name: str, record_property: Record
) -> None:
    """Each of them, wherever it waits first: exit 70 by itself, and a critical line whose stack shows the task."""
    (tmp_path / "docs").mkdir()
    settings = {**env, "WORKER_DOCS_PATH": str(tmp_path / "docs"), "WORKER_DOCS_ALLOW": "**"}
    tasks = _tasks(tmp_path, settings)
    assert tasks.keys() >= AT_LEAST
    victims = [(name, nth) for name, count in sorted(tasks.items()) for nth in range(1, count + 1)]
    names = [f"{database_name}-{number}" for number in range(len(victims))]
    places = [{**settings, "ATLAS_DB": name} for name in names]
    with MongoClient[dict[str, Any]](mongo_uri) as client, ThreadPoolExecutor(3) as pool:
        try:
            faults = list(pool.map(_fault, [tmp_path] * len(victims), places, victims))
        finally:
            for name in names:
                client.drop_database(name)
    assert not any(faults), [fault for fault in faults if fault]
    show(record_property, f"K6        {len(victims)} tasks, each died once: {', '.join(sorted(tasks))}")


def _tasks(folder: Path, settings: Mapping[str, str]) -> dict[str, int]:
    """What a leader runs, by the names of the coroutines, and how many of each."""
    listed = folder / "tasks.json"
    with worker(folder, settings, "--list", str(listed), program=(DYING,)) as running:
        eventually(lambda: listed.exists() or running.child.poll() is not None, "the list of tasks")
        assert running.stop() == 0
    return json.loads(listed.read_text())


def _fault(folder: Path, settings: Mapping[str, str], victim: tuple[str, int]) -> str:
    """What is not as it should be when that task dies; empty when all is."""
    name, nth = victim
    with worker(folder, settings, "--task", name, "--nth", str(nth), program=(DYING,)) as running:
        code = running.child.wait(PATIENCE)
        told = [line for line in running.lines() if line["action"] == "task_died"]
    if code != EXIT_BUG:
        return f"{name} ({nth}): exit {code}: {running.log.read_text()[-2000:]}"
    function = name.rpartition(".")[2]
    return (
        "" if any(f"in {function}\n" in json.dumps(line).replace("\\n", "\n") for line in told) else f"{name}: {told}"
    )
