"""B11: killed twice amid a backlog, each start goes on near where the last one was: it moves, and replays little."""

from pathlib import Path
from typing import Final

import pytest

from tests.support.crashes import Record, Store, show, until_leading
from tests.support.oracle import CLEAN, Oracle
from tests.support.processes import Worker, eventually, worker
from worker.pipeline.leader import CAPACITY

pytestmark = pytest.mark.slow

EVENTS: Final = 30_000
KILLS: Final = 2
RECEIVED: Final = 'freshness_events_total{outcome="received",source="spots"'


@pytest.fixture
def mongo_uri(long_uri: str) -> str:
    """Where all of it fits into the history."""
    return long_uri


def _received(running: Worker) -> float:
    return running.metric(RECEIVED)


def _settled(running: Worker) -> float:
    return _received(running) - running.metric("freshness_in_flight")


def test_two_kills_amid_a_backlog(
    tmp_path: Path, env: dict[str, str], database: Store, record_property: Record
) -> None:
    """Each kill costs at most what was in hand: the lives together see hardly more than the backlog."""
    with worker(tmp_path, env) as running:
        until_leading(running)
        assert running.stop() == 0
    for start in range(0, EVENTS, 5000):
        rows = [{"name": f"Spot {n}", "approvalStatus": "pending"} for n in range(start, start + 5000)]
        database.spots.insert_many(rows, ordered=False)
    lives: list[float] = []
    for _ in range(KILLS):
        with worker(tmp_path, env) as running:
            eventually(lambda: _settled(running) >= EVENTS / (KILLS + 1), "a share of the backlog")
            lives.append(_received(running))
            running.child.kill()
            running.child.wait()
    assert max(lives) < EVENTS, "killed too late"
    with worker(tmp_path, env) as running, Oracle(env) as oracle:
        eventually(lambda: _received(running) and not running.metric("freshness_in_flight"), "the end of the backlog")
        until_leading(running)
        lives.append(_received(running))
        assert running.stop() == 0
        assert oracle.differences() == CLEAN
    assert lives[-1] < EVENTS, "it began from the beginning"
    again = sum(lives) - EVENTS
    assert 0 <= again <= KILLS * 2 * CAPACITY  # what was in hand, and what was settled since a second
    show(record_property, f"B11       {EVENTS} events in {KILLS + 1} lives, {lives} of them; {again:.0f} seen again")
