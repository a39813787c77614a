"""Documents through a real worker: what is never embedded again, B26 and B30, a large one among small ones."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bson import Binary, Decimal128, ObjectId

from tests.support.crashes import Store, texts, trick, until_called
from tests.support.oracle import CLEAN, Oracle
from tests.support.processes import Embedder, Worker, command, eventually, worker

pytestmark = pytest.mark.slow


def _until(holds: Callable[[], Any], what: str) -> None:
    eventually(holds, what)


def _chunk(database: Store, says: str) -> bool:
    return database.knowledge_chunks.count_documents({"text": {"$regex": re.escape(says)}}) > 0


def _pin(action: str, env: dict[str, str], *more: str) -> None:
    done = command("pin", action, *more, env=env)
    assert done.code == 0, done.err


def test_a_text_that_is_embedded_anywhere_is_never_sent_again(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """In another document, in an earlier version, in the generation before: each text is paid for once a model."""

    def paid() -> int:
        return fake.counters()["texts"]

    with worker(tmp_path, env) as running:
        running.until_ready()
        before = paid()
        database.trickipedia.insert_one(trick("Ollie", "Pop the tail."))
        _until(lambda: _chunk(database, "Pop the tail."), "the first")
        assert paid() == before + 1

        twin = database.trickipedia.insert_one(trick("Ollie", "Pop the tail.", url="twin")).inserted_id
        _until(lambda: database.knowledge_chunks.count_documents({"docId": str(twin)}) == 1, "its twin")
        assert paid() == before + 1, "another document says the same"

        database.trickipedia.update_one({"_id": twin}, {"$set": {"description": "Another."}})
        _until(lambda: _chunk(database, "Another."), "an edit")
        database.trickipedia.delete_one({"url": "ollie"})
        _until(lambda: not _chunk(database, "Pop the tail."), "its end")
        database.trickipedia.update_one({"_id": twin}, {"$set": {"description": "Pop the tail."}})
        _until(lambda: _chunk(database, "Pop the tail."), "the undo")
        assert paid() == before + 2, "an earlier version said it"

        model = "openai/text-embedding-3-large"
        _pin("build", env, "--model", model)
        chunks = database[database.knowledge_pins.find_one()["beside"]["collection"]]  # pyright: ignore[reportOptionalSubscript]
        _until(lambda: chunks.count_documents({"model": model}) == 1, "the other generation")
        before += 1  # the word by which the model was tried
        assert paid() == before + 3, "once for the other model"
        database.trickipedia.update_one({"_id": twin}, {"$set": {"description": "Another."}})
        _until(lambda: chunks.count_documents({"text": {"$regex": "Another"}}) == 1, "an edit of both generations")
        assert paid() == before + 4, "new to the other model, and known to the first"
        _pin("switch", env, "--sample", "0")
        database.trickipedia.update_one({"_id": twin}, {"$set": {"description": "Pop the tail."}})
        _until(lambda: _chunk(database, "Pop the tail."), "the generation before, kept fresh")
        _pin("rollback", env)
        assert paid() == before + 4, "known to both"
        assert command("verify", "--sample", "0", "--json", env=env).value["ok"] is True
        assert running.stop() == 0
    with worker(tmp_path, env) as running:
        running.until_ready()
        assert running.stop() == 0
    assert paid() == before + 4


def test_b25_a_document_with_a_blank_section(tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """B25: the section makes no chunk and is nobody's fault; the document and its 20 neighbours are stored."""
    page = "# Wax\n\nRub it in.\n\n## Empty\n\n\n \n\u00a0\n\n## Ledges\n\nWax the edge.\n"
    with worker(tmp_path, env) as running:
        running.until_ready()
        database.docs.insert_one({"site": "docs", "path": "wax.md", "title": "Wax", "url": "/wax", "markdown": page})
        database.trickipedia.insert_many([trick(f"Trick {n}", f"Says {n}.") for n in range(20)])
        _until(lambda: _settled(running) == 21, "an outcome of each")
        assert {f"Trick {n}" for n in range(20)} <= set(texts(database))
        assert _chunk(database, "Rub it in.")
        assert _chunk(database, "Wax the edge.")
        assert database.freshness_dead_letters.count_documents({}) == 0
        assert running.stop() == 0


def test_b26_values_that_are_no_text(tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder) -> None:
    """B26: stored or dead-lettered, never tried without end; few log lines; its neighbours are on time."""
    odd = {
        "createdAt": datetime(2026, 1, 1, tzinfo=UTC),
        "difficulty": Decimal128("1E+6000"),
        "steps": [Binary(b"\x00\xff"), math.nan, ObjectId(), {"deep": [None, math.inf]}],
        "description": "An odd one.",
    }
    with worker(tmp_path, env) as running:
        running.until_ready()
        database.trickipedia.insert_one({**trick("Odd", ""), **odd})
        database.trickipedia.insert_many([trick(f"Trick {n}", f"Says {n}.") for n in range(20)])
        _until(lambda: {f"Trick {n}" for n in range(20)} <= set(texts(database)), "the neighbours")
        _until(lambda: _settled(running) == 21, "an outcome of each")
        lines = running.lines()
        database.trickipedia.insert_one(trick("Later", "Later."))
        _until(lambda: _chunk(database, "Later."), "a later one")
        assert _settled(running) == 22
        assert len(running.lines()) <= len(lines) + 2, "nothing is tried again and again"
        assert running.stop() == 0
    assert "Odd" in texts(database) or database.freshness_dead_letters.count_documents({}) == 1
    with Oracle(env) as oracle:
        assert {kind: count for kind, count in oracle.differences().items() if kind != "deadLettered"} == {
            kind: count for kind, count in CLEAN.items() if kind != "deadLettered"
        }


def test_b30_an_edit_while_the_provider_fails(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """B30: what was stored stays searchable, its hash too, until the new vectors are there."""
    with worker(tmp_path, env) as running:
        running.until_ready()
        database.trickipedia.insert_one(trick("Ollie", "The old words."))
        _until(lambda: _chunk(database, "The old words."), "the first")
        before = database.knowledge_chunks.find_one({"title": "Ollie"})
        calls = fake.counters()["calls"]
        fake.script({"*": {"kind": "status", "status": 500}})
        database.trickipedia.update_one({"name": "Ollie"}, {"$set": {"description": "The new words."}})
        until_called(fake, calls + 4)
        assert database.knowledge_chunks.find_one({"title": "Ollie"}) == before
        running.child.kill()
        running.child.wait()
        assert database.knowledge_chunks.find_one({"title": "Ollie"}) == before
    fake.script({"*": {}})
    with worker(tmp_path, env) as running:
        _until(lambda: _chunk(database, "The new words."), "the new words")
        assert not _chunk(database, "The old words.")
        running.until_ready()
        assert running.stop() == 0


def test_a_large_document_holds_up_nobody_under_the_local_model(
    tmp_path: Path, env: dict[str, str], database: Store
) -> None:
    """Thousands of chunks are a minute's work for the local model; a neighbour's single one is stored meanwhile."""
    local = {name: value for name, value in env.items() if not name.startswith("OPENROUTER")}
    local |= {"EMBEDDING_PROVIDER": "local"}
    sentence = "Bend the knees, look where you go, number {}, and let the board come back to you, all of it, slowly. "
    with worker(tmp_path, local) as running:
        running.until_ready()
        large = "".join(sentence.format(n) for n in range(4_000))
        database.trickipedia.insert_one(trick("Huge", large))
        eventually(lambda: running.metric("freshness_embedding_requests_total") > 2, "the large one on its way")
        for n in range(2):
            database.trickipedia.insert_one(trick(f"Trick {n}", f"Says {n}."))
            _until(lambda n=n: _chunk(database, f"Says {n}."), f"trick {n}")
            assert database.knowledge_chunks.count_documents({"title": "Huge"}) == 0, "the large one is not done yet"
        running.child.kill()


def _settled(running: Worker) -> float:
    lines = running.page("/metrics")[1].splitlines()
    counted = [line for line in lines if line.startswith("freshness_events_total{") and "received" not in line]
    return sum(float(line.rpartition(" ")[2]) for line in counted)
