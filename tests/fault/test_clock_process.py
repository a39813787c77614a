"""A real worker whose host's wall clock jumps by an hour and by a day, there and back (K1).

libfaketime moves the wall clock of the worker's process alone, by a file that it reads anew each time; the database's
clock is right, and monotonic time goes on as always.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.crashes import Store, trick, until_leading
from tests.support.oracle import CLEAN, Oracle
from tests.support.processes import Embedder, eventually, worker
from tests.support.tools import shared_library

pytestmark = pytest.mark.slow

JUMPS = (3600, -3600, 86_400, -86_400, 0)
"""Seconds that the host's clock is off by, one after the other."""


def off_by(folder: Path, env: dict[str, str], seconds: int) -> tuple[dict[str, str], Path]:
    """The environment of a process whose wall clock is off by what the file says."""
    told = folder / "offset"
    told.write_text(f"{seconds:+d}\n")
    moved = {
        "LD_PRELOAD": shared_library("libfaketimeMT.so.1", "faketime"),
        "FAKETIME_TIMESTAMP_FILE": str(told),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    return {**env, **moved}, told


def test_a_clock_that_jumps_harms_nothing(tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder) -> None:
    """It leads and is ready all the time, the lag stays what it is, no event ends early, and nobody takes the lease."""
    day = datetime.now(UTC) + timedelta(hours=3)
    jam = {"title": "Jam", "startDate": day, "endDate": day, "location": "Porto", "category": "skateboarding"}
    database.events.insert_one(jam)
    moved, told = off_by(tmp_path, env, 0)
    with worker(tmp_path, moved) as running, worker(tmp_path, off_by(tmp_path, env, 0)[0]) as standby:
        eventually(lambda: running.readiness().get("ready") and standby.readiness().get("ready"), "both at work")
        leads = running if running.readiness()["role"] == "leader" else standby
        assert database.knowledge_chunks.count_documents({"source": "events"}) == 1
        epoch = (database.freshness_leases.find_one({"_id": "worker"}) or {})["epoch"]
        for turn, seconds in enumerate(JUMPS):
            told.write_text(f"{seconds:+d}\n")
            database.trickipedia.insert_one(trick(f"Trick {turn}", "Pop."))

            def stored(turn: int = turn) -> bool:
                assert leads.readiness()["ready"], leads.readiness()
                return database.knowledge_chunks.count_documents({"title": f"Trick {turn}"}) == 1

            eventually(stored, f"the chunk after a jump to {seconds} s")
        beats = (database.freshness_leases.find_one({"_id": "worker"}) or {})["beat"]
        eventually(
            lambda: (database.freshness_leases.find_one({"_id": "worker"}) or {})["beat"] >= beats + 4, "some beats"
        )
        assert (database.freshness_leases.find_one({"_id": "worker"}) or {})["epoch"] == epoch
        assert database.knowledge_chunks.count_documents({"source": "events"}) == 1, "ended early"
        assert leads.metric("freshness_lag_seconds_sum") < 60
        with Oracle(env) as oracle:
            assert oracle.differences() == CLEAN
        assert running.stop() == 0
        assert standby.stop() == 0


@pytest.mark.parametrize("seconds", [86_400, -86_400])
def test_a_clock_that_is_wrong_from_the_start_is_said(
    seconds: int, tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """A day ahead or behind: ready, with a right lag, and one line that says by how much it differs."""
    with worker(tmp_path, off_by(tmp_path, env, seconds)[0]) as running:
        until_leading(running)
        database.trickipedia.insert_one(trick("Ollie", "Pop."))
        eventually(lambda: database.knowledge_chunks.count_documents({"title": "Ollie"}) == 1, "the chunk")
        eventually(lambda: running.metric("freshness_lag_seconds_count") >= 1, "its lag")
        assert running.metric("freshness_lag_seconds_sum") < 60
        assert running.readiness()["ready"]
        said = [line["message"] for line in running.lines() if line["action"] == "clock_skew"]
        assert len(said) == 1
        assert "ahead" in said[0] if seconds > 0 else "behind" in said[0]
        assert running.stop() == 0
