"""The database is dropped under a worker that runs: it goes on in the same process, with what is there afterwards."""

import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from tests.support.crashes import Store, doomed, settings, texts, trick, until_leading
from tests.support.oracle import CLEAN, Oracle, conserved, frozen
from tests.support.processes import Embedder, Worker, eventually, worker
from tests.support.secantus import Secantus, secantus
from worker.errors import EXIT_TRY_LATER

pytestmark = pytest.mark.slow

NAME = "dropped"


@pytest.fixture
def server(tmp_path: Path) -> Generator[Secantus]:
    """A server of this test's own."""
    with secantus(tmp_path, "--noop-heartbeat-seconds", "1") as running:
        yield running


@pytest.fixture
def store(server: Secantus) -> Generator[Store]:
    """Its database, as the backend sees it."""
    with MongoClient[dict[str, Any]](server.uri) as client:
        yield client[NAME]


@pytest.fixture
def env(server: Secantus, fake: Embedder) -> dict[str, str]:
    """The settings of its workers."""
    fake.script({"*": {}})
    return settings(server.uri, NAME, fake, WORKER_SOURCES="trickipedia,coaching")


def _until(database: Store, *titles: str) -> None:
    eventually(lambda: set(texts(database)) == set(titles), f"the chunks of {titles}")


def _told(running: Worker, action: str) -> int:
    return sum(line["action"] == action for line in running.lines())


@contextmanager
def _leader(folder: Path, env: Mapping[str, str]) -> Generator[Worker]:
    """A worker that is frozen whenever `_drop` wants it."""
    with doomed(folder, env, "checkpointed", folder / "armed", act="freeze") as running:
        yield running


def _drop(folder: Path, running: Worker, store: Store) -> None:
    """Drop the database between two transactions of the leader, which stores its position once a second.

    A drop amid one never ends on SecantusDB: it waits, with the server's lock, for rows that the transaction holds.
    """
    (folder / "armed").touch()
    eventually(lambda: frozen(running.child.pid), "the leader's freeze")
    store.client.drop_database(NAME)
    running.child.send_signal(signal.SIGCONT)


def test_the_worker_goes_on_without_a_restart(tmp_path: Path, env: dict[str, str], store: Store) -> None:
    """B06, twice: the old chunks are gone, what is written anew is embedded, pin and indexes are there again."""
    store.trickipedia.insert_one(trick("Ollie", "Pop."))
    with _leader(tmp_path, env) as running, Oracle(env, ["trickipedia", "coaching"]) as oracle:
        running.until_ready()
        _until(store, "Ollie")
        for times, title in ((1, "Kickflip"), (2, "Heelflip")):
            _drop(tmp_path, running, store)
            store.trickipedia.insert_one(trick(title, "Flick."))
            _until(store, title)
            running.until_ready()
            assert _told(running, "lease_gone") == times
            assert store.knowledge_pins.count_documents({}) == 1
            assert {"docKey_1", "textHash_1"} <= store.knowledge_chunks.index_information().keys()
            store.trickipedia.update_one({"name": title}, {"$set": {"description": "Told by the stream."}})
            eventually(lambda title=title: "Told by" in texts(store)[title], "the edit")
            oracle.until_clean()
        conserved(running)
        assert running.stop() == 0
        assert oracle.differences() == CLEAN


def test_a_lease_that_somebody_removed(tmp_path: Path, env: dict[str, str], store: Store) -> None:
    """The row alone: it is taken anew, above every epoch in the rows that stayed, and nothing is scanned for it."""
    store.trickipedia.insert_one(trick("Ollie", "Pop."))
    with worker(tmp_path, env) as running:
        running.until_ready()
        scans = running.metric("freshness_resyncs_total")
        epoch = (store.freshness_checkpoints.find_one({"_id": "stream"}) or {})["epoch"]
        store.freshness_leases.delete_many({})
        eventually(lambda: _told(running, "lease_gone") == 1, "that it is gone")
        store.trickipedia.insert_one(trick("Kickflip", "Flick."))
        _until(store, "Ollie", "Kickflip")
        higher = {"_id": "stream", "epoch": {"$gt": epoch}}
        eventually(lambda: store.freshness_checkpoints.find_one(higher) is not None, "a position of the new epoch")
        assert running.metric("freshness_resyncs_total") == scans
        assert running.stop() == 0


def test_a_drop_amid_a_scan(tmp_path: Path, env: dict[str, str], store: Store, fake: Embedder) -> None:
    """What the scan had in hand is stored nowhere, and the new documents are scanned from the beginning."""
    store.trickipedia.insert_many([trick(f"Old {n}", f"Old {n}.") for n in range(3_000)])
    counters = fake.counters()
    fake.script({str(counters["calls"]): {"kind": "slow", "seconds": 0.0}, "*": {"kind": "slow", "seconds": 600}})
    with _leader(tmp_path, env) as running, Oracle(env, ["trickipedia", "coaching"]) as oracle:
        eventually(lambda: fake.counters()["calls"] >= counters["calls"] + 2, "a second request")
        answered = fake.counters()["texts"] - counters["texts"]
        eventually(lambda: store.knowledge_chunks.count_documents({}) == answered > 0, "what was embedded, stored")
        assert "the first scan is not done" in str(running.readiness())
        _drop(tmp_path, running, store)
        fake.script({"*": {}})
        store.trickipedia.insert_many([trick(f"New {n}", f"New {n}.") for n in range(5)])
        _until(store, *(f"New {n}" for n in range(5)))
        running.until_ready()
        oracle.until_clean()
        conserved(running)
        assert _told(running, "lease_gone") == 1
        assert running.stop() == 0
        assert set(texts(store)) == {f"New {n}" for n in range(5)}


def test_a_drop_beside_a_standby(tmp_path: Path, env: dict[str, str], store: Store) -> None:
    """Whichever takes the lease leads, and the other writes nothing: it stands by, or was told that it is fenced."""
    store.trickipedia.insert_one(trick("Ollie", "Pop."))
    with _leader(tmp_path, env) as first:
        until_leading(first)
        with worker(tmp_path, env) as second, Oracle(env, ["trickipedia", "coaching"]) as oracle:
            eventually(lambda: second.readiness().get("role") == "standby", "a standby")
            before = (store.freshness_leases.find_one() or {})["epoch"]
            _drop(tmp_path, first, store)
            store.trickipedia.insert_one(trick("Kickflip", "Flick."))
            _until(store, "Kickflip")
            running = [one for one in (first, second) if one.child.poll() is None]
            eventually(lambda: any(one.readiness().get("role") == "leader" for one in running), "a leader")
            assert (store.freshness_leases.find_one() or {})["epoch"] > before
            oracle.until_clean()
            codes = [one.stop() if one.child.poll() is None else one.child.returncode for one in (second, first)]
            assert codes[0] == 0
            assert codes[1] in {0, EXIT_TRY_LATER}, first.log.read_text()
            assert oracle.differences() == CLEAN
