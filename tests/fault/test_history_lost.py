"""The history is lost while nobody leads, with real processes: what was deleted meanwhile goes, and it is said once."""

import signal
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from bson import Timestamp
from pymongo import MongoClient

from tests.support.crashes import settings, texts, trick
from tests.support.oracle import CLEAN, Oracle, frozen
from tests.support.processes import Worker, command, embedder, eventually, free_port, worker
from tests.support.secantus import SHORT, secantus

NAME = "gap"


@pytest.fixture
def short_uri(tmp_path: Path) -> Generator[str]:
    """A server that keeps 50 entries of history."""
    with secantus(tmp_path, *SHORT, "--noop-heartbeat-seconds", "1") as server:
        yield server.uri


@pytest.mark.slow
def test_what_was_deleted_in_the_gap_goes_and_the_gap_is_reported(short_uri: str, tmp_path: Path) -> None:
    """M5, B17: stop, delete, lose the history, start: the chunks go; one resync, one report."""
    with embedder() as fake, MongoClient[dict[str, Any]](short_uri) as client:
        env = settings(short_uri, NAME, fake, WORKER_SOURCES="trickipedia")
        tricks = client[NAME]["trickipedia"]
        tricks.insert_many([{"_id": n, **trick(f"Trick{n}", f"says {n}")} for n in range(6)])
        with worker(tmp_path, env) as running:
            running.until_ready()
            eventually(lambda: len(texts(client[NAME])) == 6, "six chunks")
            assert running.stop() == 0
        tricks.delete_many({"_id": {"$in": [0, 1]}})
        tricks.update_one({"_id": 2}, {"$set": {"description": "says something new"}})
        client[NAME]["other"].insert_many([{"_id": n} for n in range(500)])
        client.admin.command({"secantusAdmin.pruneOplog": 1})
        embedded = fake.counters()["texts"]
        with worker(tmp_path, env) as running:
            running.until_ready()
            eventually(lambda: set(texts(client[NAME])) == {f"Trick{n}" for n in range(2, 6)}, "the rest")
            assert running.metric('freshness_resyncs_total{reason="history_lost"}') == 1
            eventually(lambda: any(line["action"] == "gap_report" for line in running.lines()), "the report")
            assert running.stop() == 0
            (report,) = [line for line in running.lines() if line["action"] == "gap_report"]
        assert (report["sources"], report["applied"], report["deleted"], report["unchanged"]) == (
            "trickipedia",
            1,
            2,
            3,
        )
        assert report["since"] <= report["until"]
        assert "something new" in texts(client[NAME])["Trick2"]
        assert fake.counters()["texts"] == embedded + 1


def actions(running: Worker, action: str) -> list[dict[str, Any]]:
    """The lines that it has logged of an action."""
    return [line for line in running.lines() if line["action"] == action]


@pytest.mark.slow
def test_a_resync_that_is_killed_is_reported_by_the_next_leader(tmp_path: Path) -> None:
    """M5, B17: kill -9 after some documents; the report is of the whole gap, and a third start has none to tell."""
    with (
        secantus(tmp_path, "--oplog-max-entries", "3000", "--noop-heartbeat-seconds", "1") as server,
        embedder() as fake,
        MongoClient[dict[str, Any]](server.uri) as client,
    ):
        database, rows = client[NAME], client[NAME]["freshness_checkpoints"]
        env = settings(server.uri, NAME, fake, WORKER_SOURCES="trickipedia", WORKER_BATCH_TEXTS="8")
        database["trickipedia"].insert_many([{"_id": n, **trick(f"Trick{n}", f"says {n}")} for n in range(300)])
        with worker(tmp_path, env) as running:
            running.until_ready()
            assert running.stop() == 0
        database["trickipedia"].delete_many({"_id": {"$lt": 10}})
        database["trickipedia"].update_many({}, {"$set": {"description": "new words"}})
        database["other"].insert_many([{"_id": n} for n in range(4000)])
        client.admin.command({"secantusAdmin.pruneOplog": 1})
        fake.script({"*": {"kind": "slow", "seconds": 0.5}})
        with worker(tmp_path, env) as running:
            eventually(lambda: rows.find_one({"_id": "gap", "outcomes.applied": {"$gt": 0}}), "counts of the gap")
            running.child.kill()
            assert running.child.wait() == -signal.SIGKILL
            assert not actions(running, "gap_report")
        gap = rows.find_one({"_id": "gap"})
        assert gap is not None
        fake.script({})
        with worker(tmp_path, env) as running:
            eventually(lambda: actions(running, "gap_report"), "the report")
            eventually(lambda: not rows.count_documents({"_id": "gap"}), "its end")
            running.until_ready()
            assert running.stop() == 0
            (report,) = actions(running, "gap_report")
            assert not actions(running, "history_lost")
        assert report["sources"] == "trickipedia"
        assert datetime.fromisoformat(report["since"]).timestamp() == gap["since"].time
        assert gap["outcomes"]["applied"] < report["applied"] <= 290
        with worker(tmp_path, env) as running:
            running.until_ready()
            assert running.stop() == 0
            assert not actions(running, "gap_report")
        with Oracle(env, ["trickipedia"]) as oracle:
            assert oracle.differences() == CLEAN


@pytest.mark.slow
def test_a_leader_that_the_history_outran_scans_again(short_uri: str, tmp_path: Path) -> None:
    """M5, B17: halted with its stream open, while the server, which says nothing, keeps only what came last."""
    with embedder() as fake, MongoClient[dict[str, Any]](short_uri) as client:
        database = client[NAME]
        env = settings(short_uri, NAME, fake, WORKER_SOURCES="trickipedia")
        database["trickipedia"].insert_many([{"_id": n, **trick(f"Trick{n}", f"says {n}")} for n in range(6)])
        with worker(tmp_path, env) as running:
            running.until_ready()
            running.child.send_signal(signal.SIGSTOP)
            eventually(lambda: frozen(running.child.pid), "the halt")
            database["trickipedia"].delete_one({"_id": 0})
            database["trickipedia"].update_one({"_id": 1}, {"$set": {"description": "says something new"}})
            database["trickipedia"].insert_one({"_id": 6, **trick("Trick6", "says 6")})
            database["other"].insert_many([{"_id": n} for n in range(500)])
            client.admin.command({"secantusAdmin.pruneOplog": 1})
            running.child.send_signal(signal.SIGCONT)
            eventually(lambda: any(line["action"] == "gap_report" for line in running.lines()), "the report")
            running.until_ready()
            assert set(texts(database)) == {f"Trick{n}" for n in range(1, 7)}
            assert running.metric('freshness_stream_reopens_total{reason="history_lost"}') == 1
            assert running.stop() == 0
        with Oracle(env, ["trickipedia"]) as oracle:
            assert oracle.differences() == CLEAN


@pytest.mark.slow
def test_the_headroom_is_how_far_the_history_reaches_behind_the_position(tmp_path: Path) -> None:
    """The metric against the database's own first entry and the stored position; `check-config` says it is exact."""
    with (
        secantus(tmp_path, "--noop-heartbeat-seconds", "1") as server,
        embedder() as fake,
        MongoClient[dict[str, Any]](server.uri) as client,
    ):
        env = settings(server.uri, NAME, fake, WORKER_SOURCES="trickipedia")
        history = client["local"]["oplog.rs"]
        first = history.find_one({}, sort=[("$natural", 1)])
        assert first is not None
        eventually(lambda: history.count_documents({"ts": {"$gte": Timestamp(first["ts"].time + 5, 0)}}), "its age")
        checked = command("check-config", "--json", env={**env, "WORKER_METRICS_PORT": str(free_port())})
        assert checked.value["history"] == {"readable": True}
        with worker(tmp_path, env) as running:
            running.until_ready()
            eventually(lambda: running.metric("freshness_history_headroom_seconds") > 0, "the figure")
            told = running.metric("freshness_history_headroom_seconds")
            position = client[NAME]["freshness_checkpoints"].find_one({"_id": "stream"})
            assert position is not None
            behind = position["at"].time - first["ts"].time
            assert behind >= 5
            assert told == pytest.approx(behind, abs=5)
            assert running.stop() == 0
