"""Whoever asks twice: the second signal stops at once, and what PM2 does (INT, 1.6 s, KILL) loses nothing either."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from pymongo import MongoClient

from tests.support.crashes import Store, settings, texts, trick, until_called, until_leading
from tests.support.oracle import CLEAN, Oracle
from tests.support.processes import PATIENCE, Embedder, Worker, eventually, worker
from worker.embedded_record import read_record

pytestmark = pytest.mark.slow

DRAIN: Final = 60.0
"""Seconds that one signal alone would be allowed: its work does not end, since the embedder does not answer."""

AT_ONCE: Final = 5.0
"""The promise is one second; a busy machine may need more, and less than a tenth of the drain still proves it."""

PM2_KILLS: Final = 1.6  # seconds after which PM2 sends SIGKILL, where nobody sets kill_timeout
STALL: Final = {"*": {"kind": "stall_headers"}}


def _work_in_hand(running: Worker, database: Store, fake: Embedder) -> None:
    """A change whose text the embedder has, and does not answer."""
    fake.script(STALL)
    calls = fake.counters()["calls"]
    database.trickipedia.insert_one(trick("Ollie", "Pop."))
    until_called(fake, calls)


def _heard(running: Worker) -> None:
    eventually(lambda: "stop_requested" in running.log.read_text(), "the first signal heard")


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_within_a_second(
    number: signal.Signals, tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """Exit 0, measured from the second signal on, while the drain waits for an embedder that does not answer."""
    with worker(tmp_path, {**env, "WORKER_DRAIN_SECONDS": str(DRAIN)}) as running:
        until_leading(running)
        _work_in_hand(running, database, fake)
        running.child.send_signal(number)
        _heard(running)
        assert running.child.poll() is None
        assert _seconds(lambda: running.stop(number)) < AT_ONCE
        assert running.child.returncode == 0
    fake.script({"*": {}})
    with worker(tmp_path, env) as running:
        until_leading(running)
        eventually(lambda: set(texts(database)) == {"Ollie"}, "what was in hand")
        assert running.stop() == 0


def test_a_kill_amid_the_drain_loses_nothing(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """INT, 1.6 s, KILL, as PM2 does by default: the next start leads at once and does what was left."""
    with worker(tmp_path, {**env, "WORKER_DRAIN_SECONDS": str(DRAIN)}) as running:
        until_leading(running)
        _work_in_hand(running, database, fake)
        running.child.send_signal(signal.SIGINT)
        database.trickipedia.insert_one(trick("Late", "After the first signal."))
        with pytest.raises(subprocess.TimeoutExpired):
            running.child.wait(PM2_KILLS)
        running.child.kill()
        assert running.child.wait(PATIENCE) == -signal.SIGKILL
    fake.script({"*": {}})
    with worker(tmp_path, env) as running, Oracle(env) as oracle:
        until_leading(running)
        oracle.until_clean()
        assert set(texts(database)) == {"Ollie", "Late"}
        assert running.stop() == 0
        assert oracle.differences() == CLEAN


def test_an_embedded_start_right_after_a_double_signal(tmp_path: Path, fake: Embedder) -> None:
    """The worker is gone at once and its server a moment later; the start in between waits for that, and catches up."""
    fake.script({"*": {}})
    env = settings("", "TrickList2", fake, EMBEDDING_PROVIDER="openrouter", WORKER_DRAIN_SECONDS=str(DRAIN))
    del env["ATLAS_URI"], env["ATLAS_DB"]
    place = ("--embedded", "--data", str(tmp_path / "data"))
    with worker(tmp_path, env, *place) as running:
        until_leading(running)
        record = read_record(tmp_path / "data")
        assert record is not None
        with MongoClient[dict[str, Any]](record.uri) as client:
            _work_in_hand(running, client["TrickList2"], fake)
        running.child.send_signal(signal.SIGINT)
        _heard(running)
        assert _seconds(lambda: running.stop(signal.SIGINT)) < AT_ONCE
        assert running.child.returncode == 0
    fake.script({"*": {}})
    with worker(tmp_path, env, *place) as running:
        until_leading(running)
        record = read_record(tmp_path / "data")
        assert record is not None
        with MongoClient[dict[str, Any]](record.uri) as client:
            eventually(lambda: set(texts(client["TrickList2"])) == {"Ollie"}, "what was in hand")
        assert running.stop() == 0
