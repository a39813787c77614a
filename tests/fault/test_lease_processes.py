"""Two real workers and one lease: who is frozen past its time writes nothing more, and nothing comes back."""

import signal
from pathlib import Path

import pytest

from tests.support.crashes import Store, doomed, texts, trick, until_leading
from tests.support.oracle import CLEAN, Oracle, conserved, frozen
from tests.support.processes import Embedder, Worker, eventually, worker
from worker.errors import EXIT_TRY_LATER

pytestmark = pytest.mark.slow


def _until_standby(running: Worker) -> None:
    eventually(lambda: running.readiness().get("role") == "standby", "a standby")


def _says(database: Store, name: str, words: str) -> bool:
    return words in texts(database).get(name, "")


@pytest.mark.parametrize("place", ["embedded", "ledger_written", "published", "checkpointing"])
def test_a_frozen_leader_is_fenced_off(place: str, tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """Frozen past the lease's time with an old version in hand: the next leads, its writes are refused (exit 75)."""
    database.trickipedia.insert_many([trick("Ollie", "Old."), trick("Gone", "Soon.")])
    armed = tmp_path / "armed"
    with doomed(tmp_path, env, place, armed, act="freeze") as first, Oracle(env) as oracle:
        until_leading(first)
        armed.touch()
        database.trickipedia.update_many({}, {"$set": {"description": "What the frozen one has in hand."}})
        eventually(lambda: frozen(first.child.pid), f"the freeze at {place}")
        with worker(tmp_path, env) as second:
            eventually(lambda: second.readiness().get("role") == "leader", "the takeover")
            database.trickipedia.update_one({"name": "Ollie"}, {"$set": {"description": "New."}})
            database.trickipedia.delete_one({"name": "Gone"})
            eventually(lambda: set(texts(database)) == {"Ollie"} and _says(database, "Ollie", "New."), "the new state")
            first.child.send_signal(signal.SIGCONT)
            eventually(lambda: first.child.poll() is not None, "the end of the former leader")
            assert first.child.returncode == EXIT_TRY_LATER, first.log.read_text()
            assert "another process holds the lease" in first.log.read_text()
            oracle.until_clean()
            conserved(second)
            assert second.stop() == 0
        assert oracle.differences() == CLEAN
    assert set(texts(database)) == {"Ollie"}
    assert _says(database, "Ollie", "New.")


def test_a_clean_stop_hands_over(tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder) -> None:
    """The standby leads as soon as the leader has drained, and embeds nothing again."""
    database.trickipedia.insert_many([trick(f"Trick {number}", "Pop.") for number in range(20)])
    with worker(tmp_path, env) as first:
        until_leading(first)
        with worker(tmp_path, env) as second:
            _until_standby(second)
            before = fake.counters()["texts"]
            assert first.stop() == 0
            row = database.freshness_leases.find_one({"_id": "worker"}) or {}
            assert row["holder"] is None or row["holder"]["pid"] == second.child.pid
            second.until_ready()
            assert fake.counters()["texts"] == before
            assert second.stop() == 0


@pytest.mark.parametrize("place", ["fenced", "ledger_written", "released"])
def test_a_standby_replaces_a_killed_leader(place: str, tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """Killed inside a transaction or after it: the standby leads and finishes what the other one began."""
    armed = tmp_path / "armed"
    with doomed(tmp_path, env, place, armed) as first:
        until_leading(first)
        with worker(tmp_path, env) as second, Oracle(env) as oracle:
            _until_standby(second)
            armed.touch()
            database.trickipedia.insert_one(trick("Kickflip", "Flick."))
            eventually(lambda: first.child.poll() == -signal.SIGKILL, f"its end at {place}")
            second.until_ready()
            oracle.until_clean()
            assert _says(database, "Kickflip", "Flick.")
            conserved(second)
            assert second.stop() == 0
