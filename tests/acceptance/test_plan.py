"""`plan` says what `backfill` then does: the same documents, chunks, texts, tokens and money, on the sample data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from bson import ObjectId
from pymongo.database import Database

from brain.knowledge.pin import MINILM
from tests.support.processes import Embedder, command, environment, worker
from worker.config import SOURCES
from worker.sample import read_sample

pytestmark = pytest.mark.slow

Rows = Database[dict[str, Any]]
SAMPLE: Final = Path(__file__).parents[2] / "deploy" / "sample"


@pytest.fixture
def sample(database: Rows, env: dict[str, str]) -> Rows:
    """The sample data, docs included."""
    read = read_sample(SAMPLE)
    for name, rows in read.rows.items():
        database[name].insert_many([dict(row) for row in rows])
    assert read.docs is not None
    done = command("docs-sync", str(read.docs), "--allow", "**", "--json", env=env)
    assert done.code == 0, done.err
    return database


def _plan(env: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    done = command("plan", "--json", *arguments, env=env)
    assert done.code == 0, done.err
    return done.value


def _carry_out(database: Rows, env: Mapping[str, str], fake: Embedder, *arguments: str) -> dict[str, Any]:
    """Plan, backfill, and compare every number; the plan."""
    planned = _plan(env, *arguments)
    before, sent = _chunks(database), fake.counters()
    done = command("backfill", "--json", *arguments, env=env)
    assert done.code == 0, done.err
    after, total = _chunks(database), planned["total"]
    for source, row in planned["sources"].items():
        assert (row["documents"], row["chunks"]) == tuple(done.value["sources"][source].values()), source
    assert total["embeddings"] == done.value["embeddings"] == fake.counters()["texts"] - sent["texts"]
    assert total["tokens"] == done.value["tokens"]
    assert total["requests"] <= done.value["requests"] == fake.counters()["calls"] - sent["calls"]
    assert total["usd"] == pytest.approx(total["tokens"] * 0.02 / 1e6)
    changed = {id_ for id_, row in after.items() if id_ in before and row["indexedAt"] != before[id_]["indexedAt"]}
    assert total["removed"] == len(before.keys() - after.keys())
    assert total["written"] + total["rewritten"] == len(changed) + len(after.keys() - before.keys())
    assert command("verify", "--json", *arguments, env=env).value["ok"] is True
    return planned


def _chunks(database: Rows) -> dict[str, dict[str, Any]]:
    return {str(row["_id"]): row for row in database.knowledge_chunks.find({}, {"embedding": 0})}


def _nothing(planned: Mapping[str, Any]) -> bool:
    """Whether a plan is to keep everything."""
    told = ("add", "change", "remove", "written", "rewritten", "removed", "embeddings", "tokens", "requests")
    return not any(planned["total"][name] for name in told)


def test_before_the_first_start_it_writes_nothing(sample: Rows, env: dict[str, str], fake: Embedder) -> None:
    """No pin, no index, no collection, no request; and then the backfill does what it says."""
    there, sent = sorted(sample.list_collection_names()), fake.counters()
    planned = _plan(env)
    assert sorted(sample.list_collection_names()) == there
    assert fake.counters()["calls"] == sent["calls"]
    assert planned["pin"]["pinned"] is False
    assert list(planned["sources"]) == list(SOURCES)
    carried = _carry_out(sample, env, fake)
    assert carried["total"] == planned["total"]
    assert all(row["add"] and not row["keep"] for row in carried["sources"].values())
    again = _plan(env)
    assert _nothing(again), again["total"]
    assert again["pin"]["pinned"] is True
    assert again["total"]["keep"] == carried["total"]["add"]


def test_after_every_kind_of_change(sample: Rows, env: dict[str, str], fake: Embedder) -> None:
    """Edits, noise, deletes, hides, a rename that its neighbours name, texts that are known or the same twice."""
    assert command("backfill", "--json", env=env).code == 0
    tricks = sample.trickipedia
    named = tricks.find_one({"name": "Kickflip"}) or {}
    tricks.update_one({"_id": named["_id"]}, {"$set": {"name": "Kick Flip", "updatedAt": 1}})
    one, two, three = tricks.find({"_id": {"$ne": named["_id"]}}).limit(3)
    tricks.update_one({"_id": one["_id"]}, {"$set": {"description": "Entirely new words for it."}})
    tricks.update_one({"_id": two["_id"]}, {"$set": {"viewCount": 12345}})
    tricks.delete_one({"_id": three["_id"]})
    sample.spots.update_one({"approvalStatus": "approved"}, {"$set": {"approvalStatus": "private"}})
    coaching = sample.coaching.find_one() or {}
    sample.coaching.insert_one({**coaching, "_id": ObjectId()})  # a text that is known
    fresh = {"title": "Fear", "text": "Breathe out before you drop in.", "sport": "skateboarding"}
    sample.coaching.insert_many([{**fresh, "_id": number} for number in range(5)])  # one text, five times
    sample.docs.delete_many({"path": {"$in": [row["path"] for row in sample.docs.find().limit(2)]}})
    sample.riders.drop()
    planned = _carry_out(sample, env, fake)
    rows = planned["sources"]
    assert rows["trickipedia"]["change"] >= 2
    assert (rows["trickipedia"]["remove"], rows["trickipedia"]["add"]) == (1, 0)
    assert (rows["spots"]["remove"], rows["spots"]["embeddings"]) == (1, 0)
    assert (rows["coaching"]["add"], rows["coaching"]["embeddings"]) == (6, 1)
    assert rows["docs"]["remove"] == 2
    assert rows["riders"]["documents"] == rows["riders"]["keep"] == 0
    assert rows["riders"]["remove"] > 0
    assert _nothing(_plan(env))


def test_what_somebody_broke_by_hand(sample: Rows, env: dict[str, str], fake: Embedder) -> None:
    """Rows removed, of another model, of nobody, and a ledger that forgot: the plan counts what the scan mends."""
    assert command("backfill", "--json", env=env).code == 0
    chunks = sample.knowledge_chunks
    ids = [row["_id"] for row in chunks.find({"source": "trickipedia"}, {"_id": 1}).sort("_id").limit(8)]
    chunks.delete_many({"_id": {"$in": ids[:2]}})
    chunks.update_many({"_id": {"$in": ids[2:4]}}, {"$set": {"model": "other/model"}})
    chunks.update_many({"_id": {"$in": ids[4:6]}}, {"$set": {"contentHash": "0"}})
    whole = chunks.find_one({"_id": ids[6]}) or {}
    chunks.insert_many(
        [
            {"_id": "stray", "source": "trickipedia", "text": "nobody's"},
            {**whole, "_id": {"odd": 1}},
            {**whole, "_id": "gone/1", "docKey": "trickipedia/n:404"},
        ]
    )
    sample.freshness_documents.delete_one({"_id": (chunks.find_one({"_id": ids[7]}) or {})["docKey"]})
    sample.freshness_documents.update_one({"_id": {"$regex": "^spots/"}, "deleted": False}, {"$set": {"deleted": True}})
    planned = _carry_out(sample, env, fake)
    assert planned["total"]["removed"] == 3
    assert planned["total"]["rewritten"] == 2
    assert _nothing(_plan(env))


def test_one_source_alone(sample: Rows, env: dict[str, str], fake: Embedder) -> None:
    """`--source` plans what `backfill --source` does."""
    planned = _carry_out(sample, env, fake, "--source", "spots", "--source", "docs")
    assert list(planned["sources"]) == ["spots", "docs"]
    assert _plan(env)["sources"]["spots"]["add"] == 0


def test_beside_a_worker_and_with_letters(tmp_path: Path, database: Rows, env: dict[str, str], fake: Embedder) -> None:
    """It asks the leader for nothing, says that one leads, and that a dead letter is tried again."""
    fake.script({"*": {"kind": "poison", "word": "xyzzy"}})
    database.trickipedia.insert_many(
        [{"name": name, "category": "Skateboarding", "description": name} for name in ("Good", "xyzzy")]
    )
    with worker(tmp_path, env) as running:
        running.until_ready()
        planned = _plan(env)
        assert planned["leader"]["pid"] == running.child.pid
        assert (planned["total"]["deadLettered"], planned["total"]["keep"], planned["total"]["add"]) == (1, 1, 1)
        assert running.stop() == 0


def test_both_generations(database: Rows, env: dict[str, str], fake: Embedder) -> None:
    """While a second model's chunks are built, a backfill embeds for both, and the plan says so."""
    database.coaching.insert_many([{"title": f"Title {n}", "text": f"Text {n}.", "sport": "surf"} for n in range(9)])
    assert _carry_out(database, env, fake)["total"]["embeddings"] == 9
    beside = {"model": MINILM.name, "dimensions": MINILM.dimensions, "collection": "knowledge_chunks_x", "index": "x"}
    database.knowledge_pins.update_one({"_id": "active"}, {"$set": {"beside": {**beside, "role": "next"}}})
    database.coaching.delete_one({"title": "Title 1"})
    database.coaching.update_one({"title": "Title 2"}, {"$set": {"text": "Other."}})
    planned = _plan(env)
    first, second = planned["generations"]
    assert (first["embeddings"], second["embeddings"], second["usd"]) == (1, 8, 0.0)
    done = command("backfill", "--json", env=env)
    assert (done.code, done.value["embeddings"]) == (0, 9), done.err
    assert planned["total"]["tokens"] == done.value["tokens"] == first["tokens"] + second["tokens"]
    assert database.knowledge_chunks_x.count_documents({}) == planned["sources"]["coaching"]["chunks"] == 8
    assert _nothing(_plan(env))


def test_time_and_money(sample: Rows, env: dict[str, str]) -> None:
    """From the limits and the price that are set; a guess that says so where there are none, a sentence and null."""
    free = _plan(env)
    assert (free["basis"], free["seconds"]) == (["guessed"], free["total"]["seconds"])
    assert free["seconds"] >= max(source["seconds"] for source in free["sources"].values()) >= 1.0
    tokens, requests = free["total"]["tokens"], free["total"]["requests"]
    slow = _plan({**env, "WORKER_TOKENS_PER_MINUTE": "10000"})
    assert slow["seconds"] == pytest.approx(tokens / 10000 * 60, abs=0.1)
    assert _plan({**env, "WORKER_REQUESTS_PER_MINUTE": "1"})["seconds"] == requests * 60
    small = _plan({**env, "WORKER_BATCH_TEXTS": "1"})
    assert small["total"]["requests"] == small["total"]["embeddings"]
    unknown = {**env, "EMBEDDING_MODEL": "acme/embed-1", "EMBEDDING_DIMENSIONS": "1536"}
    assert _plan(unknown)["total"]["usd"] is None
    assert any("WORKER_USD_PER_MILLION_TOKENS" in note for note in _plan(unknown)["notes"])
    priced = _plan({**unknown, "WORKER_USD_PER_MILLION_TOKENS": "1000"})
    assert priced["total"]["usd"] == pytest.approx(priced["total"]["tokens"] / 1000)
    budget = {"WORKER_DAILY_BUDGET_USD": "9", "WORKER_BATCH_TOKENS": "512"}
    tight = _plan({**unknown, "WORKER_USD_PER_MILLION_TOKENS": "1000", **budget})
    assert any(f"{-(-tight['total']['usd'] // 9):.0f} days" in note for note in tight["notes"])


def test_by_the_local_model(tmp_path: Path) -> None:
    """On an embedded database: what it takes is measured, and money is none; where no database lives, 78."""
    env = environment()
    pages = tmp_path / "docs"
    pages.mkdir()
    for number in range(6):
        (pages / f"{number}.md").write_text(f"# Page {number}\n\nHow to wax a curb, part {number}.\n")
    data = str(tmp_path / "data")
    assert command("plan", "--data", data, "--json", env=env).code == 78
    assert not (tmp_path / "data").exists()
    assert command("docs-sync", str(pages), "--allow", "**", "--data", data, "--json", env=env).code == 0
    planned = _plan(env, "--data", data)
    assert (planned["total"]["add"], planned["total"]["usd"]) == (6, 0.0)
    assert planned["seconds"] is not None
    assert 0 <= planned["seconds"] < 60
    done = command("backfill", "--data", data, "--json", env=env).value
    assert (done["embeddings"], done["tokens"]) == (planned["total"]["embeddings"], planned["total"]["tokens"])
    assert _nothing(_plan(env, "--data", data))


def test_mistakes(env: dict[str, str], database: Rows) -> None:
    """An unknown source 64, one that is not watched 78, another model's pin 78, a database that is away 75."""
    assert command("plan", "--source", "tricks", "--json", env=env).value["error"]["exitCode"] == 64
    assert command("plan", "--source", "spots", "--json", env={**env, "WORKER_SOURCES": "docs"}).code == 78
    lost = {**env, "ATLAS_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300"}
    assert command("plan", "--json", env=lost).value["error"]["exitCode"] == 75
    assert command("backfill", "--json", env=env).code == 0
    other = {**env, "EMBEDDING_MODEL": "openai/text-embedding-3-large", "EMBEDDING_DIMENSIONS": "3072"}
    assert command("plan", "--json", env=other).code == 78
    shown = command("plan", env=env)
    assert (shown.code, "Nothing is to be embedded." in shown.out) == (0, True)
