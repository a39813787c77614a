"""kill -9 at random moments, of the worker and of its database, while others write: nothing lost, nothing repeated."""

import os
import random
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.support.crashes import CRASHING, Record, Store, settings, show, texts, trick, until_leading
from tests.support.oracle import CLEAN, Oracle, conserved
from tests.support.processes import Embedder, Worker, command, eventually, worker
from worker.embedded import EmbeddedServer
from worker.embedded_record import read_record
from worker.process import same_process

pytestmark = pytest.mark.slow

DOCUMENTS: Final = 400
KILLS: Final = 5
IN_FLIGHT: Final = 2 * 64 + 64  # texts: the batches of three pumps


@pytest.fixture
def seed() -> int:
    """The seed of the kills and the writes: CRASH_SEED, else a new one."""
    return int(os.environ.get("CRASH_SEED") or random.SystemRandom().randrange(10_000))


class Writers:
    """Editors, deleters and inserters at work in a thread; it goes on when its database is gone for a while.

    `texts` counts every text that ever stood in a document: what could be embedded at most.
    """

    def __init__(
        self, uri: str, name: str, rng: random.Random, pause: float = 0.01, known_as: str = "of a backfill"
    ) -> None:
        self._where = (uri, name)
        self._rng = rng
        self._pause = pause
        self._known_as = known_as
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, name="writers")
        self.turns = 0
        self.texts = 0

    @contextmanager
    def working(self) -> Generator[None]:
        """They write for the time of a block."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def _write(self) -> None:
        uri, name = self._where
        with MongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=500, socketTimeoutMS=5000) as client:
            while not self._over.wait(self._pause):
                try:
                    self._once(client[name])
                except PyMongoError:
                    continue  # it is killed just now: the backend would see the same, and try again

    def _once(self, database: Store) -> None:
        self.turns += 1
        tricks, number = database.trickipedia, self._rng.randrange(DOCUMENTS)
        match self._rng.choice(("edit", "edit", "edit", "insert", "delete")):
            case "edit":
                says = {"$set": {"description": f"Edited in turn {self.turns}."}}
                self.texts += tricks.update_one({"name": f"Trick {number}"}, says).matched_count
            case "insert":
                self.texts += 1
                tricks.insert_one(trick(f"New {self.turns} {self._known_as}", f"Inserted in turn {self.turns}."))
            case _:
                tricks.delete_one({"name": f"Trick {number}"})


def _random_moment(rng: random.Random) -> None:
    time.sleep(rng.uniform(0.05, 1.2))  # the moment of a kill is what is drawn here; nothing waits for anything


def _says_what_documents_say(database: Store) -> None:
    stored = texts(database)
    tricks = {row["name"]: row["description"] for row in database.trickipedia.find()}
    assert set(stored) == set(tricks)
    assert [name for name, says in tricks.items() if says not in stored[name]] == []


def test_random_kills_in_a_backfill(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder, seed: int, record_property: Record
) -> None:
    """Five kills of a first scan under writers: in the end everything agrees, and little was embedded twice."""
    show(record_property, f"CRASH_SEED={seed}")
    rng = random.Random(seed)  # noqa: S311 - not secrets
    database.trickipedia.insert_many([trick(f"Trick {n}", f"Says {n}.") for n in range(DOCUMENTS)])
    before = fake.counters()["texts"]
    fake.script({"*": {"kind": "slow", "seconds": 0.1}})
    writers = Writers(env["ATLAS_URI"], env["ATLAS_DB"], rng)
    with writers.working():
        for _ in range(KILLS):
            with worker(tmp_path, env) as running:
                eventually(lambda: running.readiness().get("role") == "leader", "a leader")
                _random_moment(rng)
                running.child.kill()
    with worker(tmp_path, env) as running, Oracle(env) as oracle:
        until_leading(running)
        took = oracle.until_clean()
        conserved(running)
        assert running.stop() == 0
    _says_what_documents_say(database)
    embedded = fake.counters()["texts"] - before
    assert embedded <= DOCUMENTS + writers.texts + KILLS * IN_FLIGHT
    assert command("verify", "--json", env=env).value.items() >= {"ok": True, **CLEAN}.items()
    again = fake.counters()["texts"]
    assert command("backfill", "--json", env=env).value["embeddings"] == 0
    assert fake.counters()["texts"] == again
    words = f"{KILLS} kills, {writers.turns} writes meanwhile, {embedded} texts embedded of {DOCUMENTS + writers.texts}"
    show(record_property, f"backfill  {words}, clean {took:.1f} s after it led")


def _insert_missing(uri: str) -> None:
    with MongoClient[dict[str, Any]](uri) as client:
        tricks = client["TrickList2"].trickipedia
        there = set(tricks.distinct("name"))
        wanted = [f"Trick {number}" for number in range(100)]
        if rows := [trick(name, f"{name} says.") for name in wanted if name not in there]:
            tricks.insert_many(rows)


def _kill_server(folder: Path) -> None:
    record = read_record(folder)
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)


@contextmanager
def _embedded_worker(folder: Path, env: dict[str, str], data: Path) -> Generator[Worker]:
    with worker(folder, env, "--embedded", "--data", str(data)) as running:
        yield running


def _verified(env: dict[str, str], data: Path) -> None:
    found = command("verify", "--json", "--embedded", "--data", str(data), env=env)
    assert found.value.items() >= {"ok": True, **CLEAN}.items(), found


@pytest.fixture
def data(tmp_path: Path) -> Generator[Path]:
    """A data folder; a server that a failed test leaves there is ended by its pid."""
    folder = tmp_path / "data"
    yield folder
    record = read_record(folder)
    if record is not None and same_process(record.pid, record.started):
        os.kill(record.pid, signal.SIGKILL)


@pytest.fixture
def embedded_env(fake: Embedder) -> dict[str, str]:
    """Settings of workers that own their database, with the embedder over HTTP."""
    fake.script({"*": {}})
    env = settings("", "TrickList2", fake, EMBEDDING_PROVIDER="openrouter")
    del env["ATLAS_URI"]
    return env


def test_a_kill_of_the_embedded_database(
    tmp_path: Path, data: Path, embedded_env: dict[str, str], seed: int, record_property: Record
) -> None:
    """The database dies in a load of writes, the worker after it; both start again and everything agrees."""
    show(record_property, f"CRASH_SEED={seed}")
    rng, turns = random.Random(seed), 0  # noqa: S311 - not secrets
    for number in range(3):
        with _embedded_worker(tmp_path, embedded_env, data) as running:
            uri = eventually(lambda: EmbeddedServer.running(data), "the embedded database")
            until_leading(running)
            _insert_missing(uri)
            writers = Writers(uri, "TrickList2", rng, pause=0.001, known_as=f"of round {number}")
            with writers.working():
                _random_moment(rng)
                _kill_server(data)
                _random_moment(rng)
            turns += writers.turns
            running.child.kill()
    with _embedded_worker(tmp_path, embedded_env, data) as running:
        until_leading(running)
        uri = eventually(lambda: EmbeddedServer.running(data), "the embedded database")
        _verified(embedded_env, data)
        with MongoClient[dict[str, Any]](uri) as client:
            _says_what_documents_say(client["TrickList2"])
        assert running.stop() == 0
    show(record_property, f"database  3 kills of the embedded database in {turns} writes, verified")


def test_the_next_start_adopts_the_orphan(tmp_path: Path, data: Path, embedded_env: dict[str, str]) -> None:
    """A killed worker leaves its database running; the next one takes the same one over, leads at once, stops it."""
    options = ("--place", "ledger_written", "--data", str(data))
    with worker(tmp_path, embedded_env, *options, program=(CRASHING,)) as running:
        uri = eventually(lambda: EmbeddedServer.running(data), "the embedded database")
        with MongoClient[dict[str, Any]](uri) as client:
            client["TrickList2"].trickipedia.insert_one(trick("Ollie", "Pop."))
        eventually(lambda: running.child.poll() == -signal.SIGKILL, "its end inside a transaction")
    orphan = read_record(data)
    with _embedded_worker(tmp_path, embedded_env, data) as following:
        until_leading(following)
        _verified(embedded_env, data)
        adopted = read_record(data)
        assert orphan is not None
        assert adopted is not None
        assert (adopted.pid, adopted.owner) == (orphan.pid, following.child.pid)
        assert following.stop() == 0
    assert EmbeddedServer.running(data) is None
