"""`verify` as its operators use it: whatever was broken by hand is named, mended, and nothing else is touched."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bson import ObjectId
from pymongo.database import Database

from tests.support.processes import Embedder, command, eventually, worker
from worker.mongo.rows import vector_value

pytestmark = pytest.mark.slow

Rows = Database[dict[str, Any]]


def _fill(database: Rows, env: dict[str, str], count: int) -> list[str]:
    """That many tricks, backfilled; the ids of their chunks."""
    names = [f"Trick {number}" for number in range(count)]
    database.trickipedia.insert_many(
        [{"name": name, "category": "Skateboarding", "description": f"How to {name}."} for name in names]
    )
    assert command("backfill", "--json", env=env).value["embeddings"] == count
    return [row["_id"] for row in database.knowledge_chunks.find({}, {"_id": 1}).sort("_id")]


def test_rows_with_an_odd_id_or_owner_are_orphans(database: Rows, env: dict[str, str]) -> None:
    """A document, an ObjectId or a number as `_id`, a list as owner: named, and removed by a repair."""
    ids = _fill(database, env, 3)
    chunks = database.knowledge_chunks
    whole = chunks.find_one({"_id": ids[0]}) or {}
    owner = whole["docKey"]
    odd: list[dict[str, Any]] = [
        {**whole, "_id": {"a": 1, "b": [2]}},
        {**whole, "_id": ObjectId()},
        {**whole, "_id": None},
        {**whole, "_id": f"{owner}/copy", "docKey": [owner]},
        {**whole, "_id": f"{owner}/copy-2", "docKey": {"of": owner}},
    ]
    chunks.insert_many(odd)
    found = command("verify", "--json", env=env)
    assert found.code == 1, found.err
    assert {kind: found.value[kind] for kind in ("missing", "stale", "orphaned", "duplicated", "wrongModel")} == {
        "missing": 0, "stale": 0, "orphaned": 5, "duplicated": 0, "wrongModel": 0,
    }  # fmt: skip
    repaired = command("verify", "--repair", "--json", env=env)
    assert (repaired.code, repaired.value["repaired"]) == (0, 5), repaired.err
    assert [row["_id"] for row in chunks.find({}, {"_id": 1}).sort("_id")] == ids


def test_a_scan_survives_and_sweeps_odd_rows(database: Rows, env: dict[str, str]) -> None:
    """Nothing that a stranger writes into the chunks ends the worker."""
    ids = _fill(database, env, 2)
    whole = database.knowledge_chunks.find_one({"_id": ids[0]}) or {}
    database.knowledge_chunks.insert_many(
        [{**whole, "_id": {"a": 1}}, {**whole, "_id": ObjectId(), "docKey": [whole["docKey"]]}]
    )
    done = command("backfill", "--json", env=env)
    assert done.code == 0, done.err
    assert [row["_id"] for row in database.knowledge_chunks.find({}, {"_id": 1}).sort("_id")] == ids


def test_only_the_sources_asked_for(database: Rows, env: dict[str, str]) -> None:
    """Rows of nobody count where their source is asked for; those of no source where everything is."""
    _fill(database, env, 1)
    database.knowledge_chunks.insert_many(
        [
            {"_id": "stray", "source": "trickipedia", "text": "nobody's"},
            {"_id": "lost", "source": "nowhere", "text": "nobody's"},
            {"_id": "bare", "text": "nobody's"},
        ]
    )
    assert command("verify", "--source", "spots", "--json", env=env).value["orphaned"] == 0
    assert command("verify", "--source", "trickipedia", "--json", env=env).value["orphaned"] == 1
    every = command("verify", "--json", env=env).value
    assert (every["orphaned"], every["sources"]["trickipedia"]["orphaned"]) == (3, 1)
    assert command("verify", "--repair", "--json", env=env).value["repaired"] == 3
    assert database.knowledge_chunks.count_documents({}) == 1


def test_what_was_changed_beside_the_text(database: Rows, env: dict[str, str]) -> None:
    """A title, a link, a source or an owner's id changed by hand: the row's hash says what it should be."""
    ids = _fill(database, env, 5)
    right = list(database.knowledge_chunks.find({}, {"indexedAt": 0, "sourceVersion": 0}).sort("_id"))
    for id_, change in zip(
        ids, ({"title": "x"}, {"url": "https://evil.example"}, {"source": "spots"}, {"docId": "7"}), strict=False
    ):
        database.knowledge_chunks.update_one({"_id": id_}, {"$set": change})
    assert command("verify", "--json", env=env).value["stale"] == 4
    repaired = command("verify", "--repair", "--json", env=env).value
    assert (repaired["ok"], repaired["repaired"]) == (True, 4)
    assert list(database.knowledge_chunks.find({}, {"indexedAt": 0, "sourceVersion": 0}).sort("_id")) == right


def test_a_repair_of_many_is_done_in_bounded_steps(tmp_path: Path, database: Rows, env: dict[str, str]) -> None:
    """Beside a worker: each request names a bounded number of documents and rows."""
    _fill(database, env, 3)
    with worker(tmp_path, env) as running:
        running.until_ready()
        database.knowledge_chunks.insert_many(
            [{"_id": f"stray-{number}", "source": "trickipedia", "text": "x"} for number in range(1200)]
        )
        database.knowledge_chunks.delete_many({"source": "trickipedia", "model": {"$exists": True}})
        repaired = command("verify", "--repair", "--json", env=env)
        assert (repaired.code, repaired.value["repaired"]) == (0, 1203), repaired.err
        assert running.stop() == 0
    asked = [row["arguments"] for row in database.freshness_requests.find({"kind": "look"})]
    assert len(asked) >= 3
    assert all(len(one["keys"]) + len(one["discard"]) <= 500 for one in asked)


def test_beside_a_worker_that_is_catching_up(
    tmp_path: Path, database: Rows, env: dict[str, str], fake: Embedder
) -> None:
    """What is on its way after the patience counts, and the report says why it may."""
    _fill(database, env, 2)
    with worker(tmp_path, env) as running:
        running.until_ready()
        assert command("verify", "--json", env=env).value["catchingUp"] is None
        fake.script({"*": {"kind": "status", "status": 503, "body": "{}"}})
        database.trickipedia.insert_one({"name": "New", "category": "Skateboarding", "description": "Waits."})
        eventually(lambda: running.readiness().get("ready") is False, "a worker that waits for its embedder")
        found = command("verify", "--json", env=env)
        assert (found.code, found.value["missing"]) == (1, 1), found.err
        assert found.value["catchingUp"]["behindSeconds"] >= 20
        assert found.value["catchingUp"]["pid"] == running.child.pid
        fake.script({"*": {}})
        assert running.stop() == 0


def test_vectors_of_another_model_that_say_they_are_ours(database: Rows, env: dict[str, str], fake: Embedder) -> None:
    """Same width, right name, wrong vectors: found by embedding a few again, or as many as are asked for."""
    ids = _fill(database, env, 12)
    rng = np.random.default_rng(7)
    for id_ in ids[:6]:
        foreign = rng.standard_normal(1536).astype(np.float32)
        database.knowledge_chunks.update_one({"_id": id_}, {"$set": {"embedding": vector_value(foreign)}})
    before = fake.counters()["texts"]
    few = command("verify", "--json", env=env).value  # 8 of 12, of which 6 are wrong
    assert (few["ok"], few["sample"]["checked"], fake.counters()["texts"] - before) == (False, 8, 8)
    assert few["wrongModel"] == few["sample"]["wrong"] >= 2
    none = command("verify", "--sample", "0", "--json", env=env).value
    assert (none["ok"], none["sample"]) == (True, None)
    found = command("verify", "--sample", "100", "--json", env=env)
    assert (found.code, found.value["wrongModel"], found.value["sample"]) == (1, 6, {"checked": 12, "wrong": 6})
    assert found.value["sources"]["trickipedia"]["wrongModel"] == 6
    few = command("verify", "--sample", "3", "--json", env=env).value
    assert few["sample"]["checked"] == 3
    repaired = command("verify", "--sample", "100", "--repair", "--json", env=env).value
    assert (repaired["ok"], repaired["repaired"], repaired["sample"]["wrong"]) == (True, 6, 0)
    fake.script({"*": {"kind": "status", "status": 401, "body": "{}"}})
    assert command("verify", "--sample", "3", "--json", env=env).code == 78
    unasked = command("verify", "--json", env=env)
    assert (unasked.code, unasked.value["ok"], unasked.value["sample"]["checked"]) == (0, True, 0)
    assert "key" in unasked.value["sample"]["skipped"]
