"""kill -9 beside a dead letter, a request and a scan: the rest of the crash matrix."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fault.test_crash_matrix import MATRIX
from tests.support.crashes import (
    Figures,
    Record,
    Store,
    doomed,
    show,
    texts,
    timed,
    trick,
    until_killed,
    until_leading,
)
from tests.support.oracle import Oracle
from tests.support.processes import PATIENCE, ROOT, Embedder, eventually, worker

pytestmark = pytest.mark.slow


def test_a_kill_beside_a_dead_letter(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder, record_property: Record
) -> None:
    """A document that the provider refuses has one letter, not two, and its neighbour its chunk."""
    figures = Figures()
    fake.script({"*": {"kind": "poison", "word": "xyzzy"}})
    with Oracle(env) as oracle:
        for turn, place in enumerate(MATRIX["poison"], 1):
            armed = tmp_path / f"armed-{place}"
            with doomed(tmp_path, env, place, armed) as running:
                until_leading(running)
                armed.touch()
                both = [trick(f"Bad {turn}", f"xyzzy {turn}"), trick(f"Good {turn}", f"Says {turn}.")]
                database.trickipedia.insert_many(both)
                until_killed(running, place)
                figures.kills += 1
            with worker(tmp_path, env) as running:
                figures.caught_up.append(timed(lambda: (until_leading(running), oracle.until_clean())))
                _until_letters(database, turn)
                assert running.stop() == 0
            assert database.freshness_dead_letters.count_documents({}) == turn
            assert set(texts(database)) == {f"Good {number}" for number in range(1, turn + 1)}
    show(record_property, figures.line("poison"))


def test_a_kill_between_a_request_and_its_answer(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder, record_property: Record
) -> None:
    """The command that waits for a leader's work gets its answer from the next leader."""
    figures = Figures()
    database.trickipedia.insert_one(trick("Ollie", "Pop."))
    with doomed(tmp_path, env, "performed") as running:
        until_leading(running)
        waiting = [sys.executable, "-m", "worker", "backfill", "--json"]
        with subprocess.Popen(waiting, env=env, cwd=ROOT, stdout=subprocess.DEVNULL) as asking:
            try:
                until_killed(running, "performed")
                figures.kills += 1
                with worker(tmp_path, env) as following:
                    figures.caught_up.append(timed(lambda: until_leading(following)))
                    assert asking.wait(PATIENCE) == 0
                    assert following.stop() == 0
            finally:
                asking.kill()
    show(record_property, figures.line("request"))


def test_a_kill_amid_a_removal_beside_a_scan(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """A collection is dropped while another one is scanned for the first time, and the worker killed amid the removal.

    The next start removes the chunks before that scan is done, and the scan goes on where it was.
    """
    database.coaching.insert_many([{"title": f"Tip {number}", "text": f"Says {number}."} for number in range(20)])
    # Before the position that the second start goes on from: it scans them, and no event tells of them.
    database.trickipedia.insert_many([trick(f"Trick {number}", f"Says {number}.") for number in range(2000)])
    with worker(tmp_path, {**env, "WORKER_SOURCES": "coaching"}) as running:
        until_leading(running)
        assert running.stop() == 0
    tips = {"source": "coaching"}
    assert database.knowledge_chunks.count_documents(tips) == 20
    fake.script({"*": {"kind": "slow", "seconds": 1.0}})
    both, armed = {**env, "WORKER_SOURCES": "coaching,trickipedia"}, tmp_path / "armed"
    with doomed(tmp_path, both, "sweeping", armed) as running:
        eventually(lambda: _scan_of(database, "trickipedia").get("after"), "a place of the scan")
        armed.touch()
        database.coaching.drop()
        until_killed(running, "sweeping")
    place = _scan_of(database, "trickipedia")
    assert (_scan_of(database, "coaching")["reason"], _scan_of(database, "coaching")["done"]) == ("drop", False)
    with worker(tmp_path, both) as running, Oracle(both) as oracle:
        eventually(lambda: database.knowledge_chunks.count_documents(tips) == 0, "the end of the tips' chunks")
        now = _scan_of(database, "trickipedia")
        assert not now["done"]
        assert (now["startedAt"], now["seen"] >= place["seen"]) == (place["startedAt"], True)
        fake.script({"*": {}})
        until_leading(running)
        oracle.until_clean()
        assert running.stop() == 0


def _scan_of(database: Store, source: str) -> dict[str, Any]:
    return database.freshness_checkpoints.find_one({"_id": f"scan/{source}"}) or {}


def _until_letters(database: Store, number: int) -> None:
    eventually(lambda: database.freshness_dead_letters.count_documents({}) == number, f"{number} letters")
