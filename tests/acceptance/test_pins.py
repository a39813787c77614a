"""Changing the embedding model as its operators do it: real processes, edits and questions all the while, kill -9."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import pytest
from pymongo.database import Database

from tests.support.processes import (
    PATIENCE,
    ROOT,
    Embedder,
    Finished,
    command,
    eventually,
    worker,
)

pytestmark = pytest.mark.slow

Rows = Database[dict[str, Any]]
SMALL: Final = "openai/text-embedding-3-small"
OTHER: Final = "other/embed"
"""Of the same width as SMALL, and with vectors of its own: only the names tell them apart."""
SAME_WIDTH: Final = ("--model", OTHER, "--dimensions", "1536")
DOCUMENTS: Final = 300
IN_FLIGHT: Final = 192
"""Texts of one batch of the runner for each of its pumps: what a kill makes it send again at most."""


def fill(database: Rows, count: int) -> None:
    """That many tricks."""
    rows = [{"name": f"Trick {n}", "category": "Skateboarding", "description": f"How to {n}."} for n in range(count)]
    database.trickipedia.insert_many(rows)


def pin(env: Mapping[str, str], *arguments: str) -> Finished:
    """Run a `pin` command; it must not have crashed."""
    done = command("pin", *arguments, "--json", env=env)
    assert "Traceback" not in done.err, done.err
    return done


def generations(env: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What `pin status` shows, by role."""
    return {row["role"]: row for row in pin(env, "status").value["generations"]}


def texts(database: Rows, collection: str) -> set[str]:
    """What a generation holds."""
    return {row["text"] for row in database[collection].find({}, {"text": 1})}


class Editor:
    """Edits tricks, one after the other, until it is stopped; in a thread of its own."""

    def __init__(self, database: Rows) -> None:
        self._database = database
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._edit, daemon=True)
        self.edits = 0

    def _edit(self) -> None:
        while not self._stop.wait(1.0):
            self.edits += 1
            name = f"Trick {self.edits % DOCUMENTS}"
            self._database.trickipedia.update_one({"name": name}, {"$set": {"description": f"Edit {self.edits}."}})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)


@dataclass(slots=True)
class Reader:
    """A process that asks all the while."""

    child: subprocess.Popen[bytes]
    log: Path

    def answers(self) -> list[dict[str, Any]]:
        """Every answer so far; none may be blank, mixed or an error."""
        lines = self.log.read_text().splitlines()
        found = [json.loads(line) for line in lines if line.endswith("}")]
        for answer in found:
            assert answer["error"] is None, answer
            assert answer["hits"] == 5, answer
            assert answer["models"] == [f"{answer['pin']['model']}/{answer['pin']['dimensions']}"], answer
        return found

    def follows(self, model: str) -> None:
        """Every question that is asked from now on is answered by this model."""
        now = time.time()
        late = eventually(lambda: [one for one in self.answers() if one["begun"] >= now][4:], "five answers")
        assert {one["pin"]["model"] for one in [*late, *(one for one in self.answers() if one["begun"] >= now)]} == {
            model
        }


@contextmanager
def reader(folder: Path, env: Mapping[str, str]) -> Generator[Reader]:
    """A reader that has answered once; no error and no blank answer may be among all of its answers at the end."""
    log = folder / "answers"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.searching", "how to"], env=dict(env), cwd=ROOT, stdout=out
        ) as child,
    ):
        running = Reader(child, log)
        try:
            eventually(running.answers, "a first answer")
            yield running
            assert child.poll() is None
            running.answers()
        finally:
            child.kill()
            child.wait(PATIENCE)


def until_half_built(database: Rows) -> str:
    """Wait until some of the next generation is stored, and not all; the name of its collection."""

    def half() -> str | None:
        beside = (database.knowledge_pins.find_one({"_id": "active"}) or {}).get("beside")
        name = None if beside is None else str(beside["collection"])
        return name if name and 20 <= database[name].count_documents({}) < DOCUMENTS - 30 else None

    return eventually(half, "half a generation")


def test_the_whole_way_amid_edits_questions_and_kills(
    tmp_path: Path, env: dict[str, str], database: Rows, fake: Embedder
) -> None:
    """Build, kill, go on, refuse, mend, switch, roll back, drop: search is never blank, never mixed, never wrong."""
    fill(database, DOCUMENTS)
    assert command("backfill", "--json", env=env).code == 0
    with reader(tmp_path, env) as asking, Editor(database) as editing:
        with worker(tmp_path, env) as running:
            running.until_ready()
            fake.script({"*": {"kind": "slow", "seconds": 1.0}})
            build = [sys.executable, "-m", "worker", "pin", "build", *SAME_WIDTH, "--json"]
            with subprocess.Popen(build, env=dict(env), cwd=ROOT, stdout=subprocess.DEVNULL) as building:
                name = until_half_built(database)
                assert running.readiness()["ready"], "a build must not make the worker look unready"
                building.kill()
                running.child.kill()
                building.wait(PATIENCE)
                running.child.wait(PATIENCE)
        fake.script({"*": {}})
        stored = database[name].count_documents({})
        assert 20 <= stored < DOCUMENTS
        refused = pin(env, "switch")
        assert (refused.code, refused.value["switched"]) == (1, False)
        assert "not built yet" in refused.value["why"][0]
        with worker(tmp_path, env) as running:
            running.until_ready()
            built = pin(env, "build")
            assert built.code == 0, built.out
            assert built.value["collection"] == name, "it goes on with the same generation"
            row = generations(env)["next"]
            assert (row["model"], row["dimensions"], row["built"]) == (OTHER, 1536, True)
            _refused_while_it_differs(database, env, name)
            assert pin(env, "build").code == 0
            asking.follows(SMALL)
            switched = pin(env, "switch")
            assert (switched.code, switched.value["switched"]) == (0, True), switched.out
            asking.follows(OTHER)
            _both_are_kept_fresh(database, name)
            assert pin(env, "rollback").code == 0
            asking.follows(SMALL)
            _both_are_kept_fresh(database, name)
            assert pin(env, "switch").code == 0
            asking.follows(OTHER)
            _dropped(database, env)
            asking.follows(OTHER)
            assert running.stop() == 0
        assert editing.edits > 10
    with worker(tmp_path, env) as running:
        running.until_ready()
        verified = command("verify", "--json", env=env)
        assert verified.value["ok"] is True, verified.out
        assert running.stop() == 0


def _refused_while_it_differs(database: Rows, env: Mapping[str, str], name: str) -> None:
    """A chunk is missing, of a document that nobody edits meanwhile: nothing is switched."""
    assert database[name].delete_one({"title": f"Trick {DOCUMENTS - 1}"}).deleted_count == 1
    refused = pin(env, "switch")
    assert (refused.code, refused.value["switched"]) == (1, False), refused.out
    assert "differs" in refused.value["why"][0]
    assert generations(env)["active"]["model"] == SMALL


def _both_are_kept_fresh(database: Rows, name: str) -> None:
    """What is written now reaches both generations."""
    words = f"Said at {time.time()}."
    database.trickipedia.update_one({"name": "Trick 0"}, {"$set": {"description": words}})
    for collection in (name, "knowledge_chunks"):
        eventually(lambda collection=collection: any(words in text for text in texts(database, collection)), collection)


def _dropped(database: Rows, env: Mapping[str, str]) -> None:
    """Not without a word, not what is searched; then for good."""
    assert command("pin", "drop", "--json", env=env).code == 64
    assert pin(env, "drop", OTHER, "--yes").code == 1
    assert "knowledge_chunks" in database.list_collection_names()
    dropped = pin(env, "drop", "--yes")
    assert (dropped.code, dropped.value["removed"]) == (0, True), dropped.out
    assert "knowledge_chunks" not in database.list_collection_names()
    assert set(generations(env)) == {"active"}
    assert pin(env, "rollback").code == 1


def test_without_a_worker_the_command_does_it_itself(env: dict[str, str], database: Rows, fake: Embedder) -> None:
    """Also with another width; a third generation is refused; a text is sent once a model, but for a word of trial."""
    fill(database, 12)
    assert command("backfill", "--json", env=env).code == 0
    before = fake.counters()["texts"]
    built = pin(env, "build", "--model", "openai/text-embedding-3-large")
    assert (built.code, built.value["chunks"], built.value["embeddings"]) == (0, 12, 12), built.out
    assert pin(env, "build").value["embeddings"] == 0
    assert fake.counters()["texts"] - before == 12 + 1
    third = pin(env, "build", *SAME_WIDTH)
    assert third.code == 1
    assert "two generations" in third.value["error"]["message"]
    assert pin(env, "switch").code == 0
    found = command("search", "how to", "--json", env=env, module="brain").value
    assert found["pin"]["dimensions"] == 3072
    assert {hit["model"] for hit in found["hits"]} == {"openai/text-embedding-3-large"}
    assert command("verify", "--json", env=env).value["ok"] is True
    assert pin(env, "drop", "--yes").code == 0
    again = pin(env, "build", "--model", "openai/text-embedding-3-large")
    assert again.value["embeddings"] == 0, "the same model's texts are there"


def test_what_is_not_watched_any_more_is_not_lost_without_a_word(env: dict[str, str], database: Rows) -> None:
    """Its chunks are searched until the switch, and no other generation is built of it."""
    fill(database, 3)
    database.docs.insert_one({"path": "a.md", "title": "A", "markdown": "Words.", "url": "/a"})
    assert command("backfill", "--json", env=env).code == 0
    narrow = {**env, "WORKER_SOURCES": "trickipedia"}
    assert pin(narrow, "build", *SAME_WIDTH).code == 0
    assert "docs" in pin(narrow, "status").value["switch"]["why"][0]
    refused = pin(narrow, "switch")
    assert (refused.code, refused.value["switched"]) == (1, False), refused.out
    assert "--accept-unwatched" in refused.value["why"][0]
    assert pin(narrow, "switch", "--accept-unwatched").code == 0


def test_a_build_by_the_command_goes_on_after_a_kill(env: dict[str, str], database: Rows, fake: Embedder) -> None:
    """Nobody else leads: killed in the middle, given again, it keeps what it has and sends what it lacks."""
    fill(database, DOCUMENTS)
    assert command("backfill", "--json", env=env).code == 0
    before = fake.counters()["texts"]
    fake.script({"*": {"kind": "slow", "seconds": 1.0}})
    build = [sys.executable, "-m", "worker", "pin", "build", *SAME_WIDTH]
    with subprocess.Popen(build, env=dict(env), cwd=ROOT, stdout=subprocess.DEVNULL) as building:
        name = until_half_built(database)
        building.kill()
        building.wait(PATIENCE)
    fake.script({"*": {}})
    stored = database[name].count_documents({})
    assert 20 <= stored < DOCUMENTS
    built = pin(env, "build")
    assert (built.code, built.value["collection"], built.value["chunks"]) == (0, name, DOCUMENTS), built.out
    assert built.value["embeddings"] == DOCUMENTS - stored
    assert fake.counters()["texts"] - before <= DOCUMENTS + IN_FLIGHT
    assert pin(env, "switch").code == 0


def test_what_settings_name_they_keep(tmp_path: Path, env: dict[str, str], database: Rows) -> None:
    """A brain that names the old model is refused after the switch; a worker may name either while both live."""
    fill(database, 3)
    named = {**env, "EMBEDDING_MODEL": SMALL}
    assert command("backfill", "--json", env=named).code == 0
    assert pin(named, "build", *SAME_WIDTH).code == 0
    assert pin(named, "switch").code == 0
    refused = command("search", "how to", "--json", env=named, module="brain")
    assert refused.code == 78
    assert OTHER in refused.err
    with worker(tmp_path, named) as running:
        running.until_ready()
        dropped = pin(env, "drop", "--yes")
        assert dropped.code == 1, "the worker that leads names the model that would go"
        assert "EMBEDDING_MODEL" in dropped.value["error"]["message"]
        assert running.stop() == 0
    assert set(generations(env)) == {"active", "previous"}
    assert pin(env, "drop", "--yes").code == 0
    assert command("status", "--json", env=named).code == 78
    assert command("verify", "--json", env=env).value["ok"] is True


def test_the_local_model_beside_a_provider_s(env: dict[str, str], database: Rows) -> None:
    """Built in this process, switched to, and asked without any key but the worker's."""
    fill(database, 3)
    assert command("backfill", "--json", env=env).code == 0
    built = pin(env, "build", "--provider", "local")
    assert (built.code, built.value["dimensions"]) == (0, 384), built.out
    assert pin(env, "switch").code == 0
    found = command("search", "how to", "--json", env=env, module="brain").value
    assert (len(found["hits"]), found["pin"]["dimensions"]) == (3, 384)


@pytest.mark.parametrize(
    "arguments",
    [
        ("build",),
        ("build", "--model", "no-vendor"),
        ("build", "--model", OTHER),
        ("build", "--model", SMALL, "--dimensions", "7"),
        ("build", "--model", SMALL, "--provider", "local"),
        ("build", "--model", "openrouter/auto", "--dimensions", "7"),
        ("drop", "x", "y"),
    ],
)
def test_a_mistake_is_told_before_anything_is_done(
    env: dict[str, str], database: Rows, arguments: tuple[str, ...]
) -> None:
    """Exit code 64, and no generation begins."""
    assert command("backfill", "--json", env=env).code == 0
    done = command("pin", *arguments, "--json", env=env)
    assert done.code == 64, done.err
    assert "Traceback" not in done.err
    row = database.knowledge_pins.find_one({"_id": "active"})
    assert row is not None
    assert "beside" not in row


def test_nothing_to_switch_roll_back_or_drop(env: dict[str, str]) -> None:
    """Each says so with exit code 1; an empty database has a generation all the same."""
    assert pin(env, "status").value["generations"] == [], "nothing is pinned yet"
    assert pin(env, "build", *SAME_WIDTH).code == 78
    assert command("backfill", "--json", env=env).code == 0
    for act in (("switch",), ("rollback",), ("drop", "--yes")):
        refused = pin(env, *act)
        assert (refused.code, bool(refused.value["why"])) == (1, True), act
