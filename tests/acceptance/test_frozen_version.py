"""A document whose stored version lies in the future: `verify` says so, and it is frozen for nobody."""

from pathlib import Path

import pytest
from bson import Timestamp

from tests.support.crashes import Store, settings
from tests.support.processes import Embedder, command, eventually, worker

pytestmark = pytest.mark.slow

NEVER = Timestamp(4_000_000_000, 1)
"""In the year 2096."""


@pytest.fixture
def env(mongo_uri: str, database_name: str, fake: Embedder) -> dict[str, str]:
    """The settings."""
    return settings(mongo_uri, database_name, fake, WORKER_SOURCES="coaching")


def _freeze(database: Store) -> None:
    database.freshness_documents.update_many({}, {"$set": {"version": NEVER}})
    database.knowledge_chunks.update_many({}, {"$set": {"sourceVersion": NEVER}})


def test_verify_names_it_and_repair_mends_it(database: Store, env: dict[str, str], fake: Embedder) -> None:
    """Unchanged and edited alike, and nothing is embedded for the version alone."""
    database.coaching.insert_one({"_id": 1, "title": "Tip", "text": "Words."})
    assert command("backfill", env=env).code == 0
    embedded = fake.counters()["texts"]
    _freeze(database)
    looked = command("verify", "--json", env=env)
    assert (looked.code, looked.value["ok"], looked.value["stale"]) == (1, False, 1)
    mended = command("verify", "--repair", "--sample", "0", "--json", env=env)
    assert (mended.code, mended.value["ok"], mended.value["repaired"]) == (0, True, 1)
    assert fake.counters()["texts"] == embedded
    _freeze(database)
    database.coaching.update_one({"_id": 1}, {"$set": {"text": "Edited."}})
    assert command("verify", "--repair", "--json", env=env).code == 0
    (chunk,) = database.knowledge_chunks.find()
    assert "Edited." in chunk["text"]
    (row,) = database.freshness_documents.find()
    assert chunk["sourceVersion"] == row["version"] < NEVER


def test_an_edit_beside_a_worker_comes_through(tmp_path: Path, database: Store, env: dict[str, str]) -> None:
    """Without a repair too: such a version guards nothing."""
    database.coaching.insert_one({"_id": 1, "title": "Tip", "text": "Words."})
    with worker(tmp_path, env) as running:
        running.until_ready()
        _freeze(database)
        database.coaching.update_one({"_id": 1}, {"$set": {"text": "Edited."}})
        edited = {"text": {"$regex": "Edited"}}
        eventually(lambda: database.knowledge_chunks.find_one(edited) is not None, "the edit")
        assert running.stop() == 0
