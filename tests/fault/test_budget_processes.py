"""The day's budget with real processes: paused and loud, the same after kill -9 and restart, on when it is raised."""

from pathlib import Path

import pytest

from tests.support.crashes import Store, trick, until_called
from tests.support.oracle import CLEAN, Oracle
from tests.support.processes import Embedder, Worker, command, eventually, worker

pytestmark = pytest.mark.slow

TRICKS = 60
WORDS = 200
BUDGET = 0.0002
"""Dollars: about 10,000 tokens of text-embedding-3-small, half of what the tricks here have."""


@pytest.fixture
def poor(env: dict[str, str]) -> dict[str, str]:
    """Settings with a small budget and small requests."""
    return {**env, "WORKER_DAILY_BUDGET_USD": str(BUDGET), "WORKER_BATCH_TEXTS": "2", "WORKER_BATCH_TOKENS": "1024"}


def _fill(database: Store) -> None:
    database.trickipedia.insert_many(
        [trick(f"Trick {n}", " ".join([f"word{n % 7}"] * WORDS) + f" number {n}.") for n in range(TRICKS)]
    )


def _counted(database: Store) -> float:
    return sum(row["countedUsd"] for row in database.freshness_budget.find())


def _open(database: Store) -> list[float]:
    return [usd for row in database.freshness_budget.find() for usd in row["open"].values()]


def _until_paused(running: Worker) -> None:
    def told() -> bool:
        return any("embedding_budget" in reason for reason in running.readiness().get("reasons", ()))

    eventually(told, "the reason in /readyz")


def test_a_spent_budget_pauses_survives_and_is_raised(
    tmp_path: Path, poor: dict[str, str], database: Store, fake: Embedder
) -> None:
    """Never more than the budget; readiness, metrics and `status` tell; nothing is lost when it is raised."""
    _fill(database)
    with worker(tmp_path, poor) as running:
        _until_paused(running)
        assert running.page("/readyz")[0] == 503
        eventually(lambda: running.metric("freshness_embedding_budget_remaining_usd") < BUDGET / 4, "nearly all spent")
        assert 0 < running.metric("freshness_embedding_cost_usd_total") <= BUDGET
        told = command("status", "--json", env=poor).value["budget"]
        assert told["limitUsd"] == BUDGET
        assert told["countedUsd"] == pytest.approx(_counted(database), abs=1e-6)
        running.child.kill()
        running.child.wait()
    assert 0 < _counted(database) <= BUDGET
    calls = fake.counters()["calls"]
    with worker(tmp_path, poor) as running:
        _until_paused(running)
        assert running.stop() == 0
    assert fake.counters()["calls"] <= calls + 1, "what was left for a smaller text, at most"
    assert _counted(database) <= BUDGET
    done = command("backfill", env=poor)
    assert done.code == 75, done.err
    assert "WORKER_DAILY_BUDGET_USD" in done.err
    rich = {**poor, "WORKER_DAILY_BUDGET_USD": "1"}
    with worker(tmp_path, rich) as running, Oracle(rich) as oracle:
        running.until_ready()
        eventually(lambda: oracle.differences() == CLEAN, "convergence")
        assert running.stop() == 0
    assert database.freshness_dead_letters.count_documents({}) == 0
    assert _open(database) == []


def test_a_kill_between_reservation_and_settlement_counts(
    tmp_path: Path, poor: dict[str, str], database: Store, fake: Embedder
) -> None:
    """What the killed call may have cost stays counted, and the next start goes on from there."""
    fake.script({"*": {"kind": "stall_accept"}})
    calls = fake.counters()["calls"]
    database.trickipedia.insert_one(trick("Ollie", " ".join(["pop"] * WORDS)))
    with worker(tmp_path, poor) as running:
        reserved = eventually(lambda: _open(database), "a reservation")
        until_called(fake, calls)
        running.child.kill()
        running.child.wait()
    assert _counted(database) == pytest.approx(sum(reserved))
    fake.script({"*": {}})
    with worker(tmp_path, poor) as running:
        running.until_ready()
        assert running.stop() == 0
    cost = _counted(database) - sum(reserved)
    assert cost > 0, "the second call counts beside the first"
    assert _open(database) == reserved
