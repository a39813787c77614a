"""SIGSTOP at every place of the worker's way, a newer version meanwhile, SIGCONT: the newer version is what is stored.

It is shorter than the lease here; who is frozen for longer is fenced off (`test_lease_processes.py`).
"""

import signal
from pathlib import Path
from typing import Final

import pytest

from tests.fault.test_crash_matrix import LIVE, MATRIX
from tests.support.crashes import Store, doomed, texts, trick, until_leading
from tests.support.oracle import CLEAN, Oracle, frozen
from tests.support.processes import Embedder, Worker, eventually, worker

pytestmark = pytest.mark.slow

STOPPING: Final = ("draining", "drained")
AT_THE_START: Final = ("leading", *(place for place in MATRIX["snapshot"] if place not in {*LIVE, "kept"}))
"""A place of a scan is kept once a second: no scan of a test takes that long without being made slow."""


def test_a_freeze_on_the_way(tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder) -> None:
    """SIGSTOP at a place, a newer version meanwhile, SIGCONT: the newer version is what is stored."""
    database.trickipedia.insert_one(trick("Base", "Says 0."))
    frozen_at = [place for place in LIVE if place not in {"answering", "leading", *STOPPING}]
    with Oracle(env) as oracle:
        for place in frozen_at:
            armed = tmp_path / f"armed-{place}"
            with doomed(tmp_path, env, place, armed, act="freeze") as running:
                until_leading(running)
                armed.touch()
                database.trickipedia.update_one({"name": "Base"}, {"$set": {"description": f"Before {place}."}})
                eventually(lambda: frozen(running.child.pid), f"the freeze at {place}")
                database.trickipedia.update_one({"name": "Base"}, {"$set": {"description": f"After {place}."}})
                running.child.send_signal(signal.SIGCONT)
                _until_says(database, f"After {place}.")
                oracle.until_clean()
                assert running.stop() == 0
                assert oracle.differences() == CLEAN


def test_a_freeze_at_the_start(tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """Before it reads the stream, and amid its first scan and sweep: what changes and goes meanwhile is seen."""
    database.trickipedia.insert_many([trick("Base", "Says 0."), trick("Gone", "Soon.")])
    with worker(tmp_path, env) as running:
        until_leading(running)
        assert running.stop() == 0
    with Oracle(env) as oracle:
        for place in AT_THE_START:
            database.freshness_checkpoints.delete_many({})  # all is scanned once more, and there is something to sweep
            with doomed(tmp_path, env, place, act="freeze") as running:
                _until_frozen(running, place)
                database.trickipedia.update_one({"name": "Base"}, {"$set": {"description": f"After {place}."}})
                database.trickipedia.delete_one({"name": "Gone"})
                running.child.send_signal(signal.SIGCONT)
                _until_says(database, f"After {place}.")
                until_leading(running)
                oracle.until_clean()
                assert set(texts(database)) == {"Base"}
                database.trickipedia.insert_one(trick("Gone", "Soon."))
                eventually(lambda: set(texts(database)) == {"Base", "Gone"}, "what goes next")
                assert running.stop() == 0


@pytest.mark.parametrize("place", STOPPING)
def test_a_freeze_amid_a_stop(place: str, tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """It ends cleanly once it goes on, and what changed meanwhile is the next start's."""
    database.trickipedia.insert_one(trick("Base", "Says 0."))
    with doomed(tmp_path, env, place, act="freeze") as running:
        until_leading(running)
        database.trickipedia.update_one({"name": "Base"}, {"$set": {"description": f"Before {place}."}})
        running.child.terminate()
        _until_frozen(running, place)
        database.trickipedia.update_one({"name": "Base"}, {"$set": {"description": f"After {place}."}})
        running.child.send_signal(signal.SIGCONT)
        eventually(lambda: running.child.poll() is not None, "its end")
        assert running.child.returncode == 0
    with worker(tmp_path, env) as running, Oracle(env) as oracle:
        until_leading(running)
        _until_says(database, f"After {place}.")
        oracle.until_clean()
        assert running.stop() == 0


def _until_frozen(running: Worker, place: str) -> None:
    eventually(lambda: frozen(running.child.pid), f"the freeze at {place}")


def _until_says(database: Store, words: str) -> None:
    eventually(lambda: words in texts(database)["Base"], f"a chunk that says {words!r}")
