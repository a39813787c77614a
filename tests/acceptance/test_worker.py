"""The worker as its operators use it: real processes, signals, ports, a real database, an embedder over HTTP."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from tests.support.crashes import KEY
from tests.support.processes import (
    Embedder,
    command,
    eventually,
    worker,
)

pytestmark = pytest.mark.slow


def _trick(name: str, **fields: object) -> dict[str, Any]:
    return {"name": name, "category": "Skateboarding", "description": f"How to {name}.", "url": name.lower(), **fields}


def _texts(database: Database[dict[str, Any]]) -> list[str]:
    return sorted(row["text"] for row in database.knowledge_chunks.find({}, {"text": 1}))


def _until_text(database: Database[dict[str, Any]], words: str) -> None:
    eventually(lambda: any(words in text for text in _texts(database)), f"a chunk that says {words!r}")


def _until_gone(database: Database[dict[str, Any]], words: str) -> None:
    eventually(lambda: not any(words in text for text in _texts(database)), f"no chunk that says {words!r}")


@pytest.mark.parametrize("driver", ["pymongo", "motor"])
def test_every_kind_of_change_reaches_the_chunks(
    driver: str, tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]]
) -> None:
    """Insert, update, replace, hide, delete, drop: the chunks follow each, and the figures add up, by both drivers."""
    env["MONGO_DRIVER"] = driver
    database.trickipedia.insert_one(_trick("Ollie"))
    with worker(tmp_path, env) as running:
        running.until_ready()
        _until_text(database, "How to Ollie.")
        database.trickipedia.update_one({"name": "Ollie"}, {"$set": {"description": "Snap and slide."}})
        _until_text(database, "Snap and slide.")
        database.trickipedia.replace_one({"name": "Ollie"}, _trick("Ollie", description="Pop."))
        _until_text(database, "Pop.")
        spot = {"name": "Bowl", "approvalStatus": "approved", "city": "Porto", "latitude": 1.0, "longitude": 2.0}
        database.spots.insert_one(spot)
        _until_text(database, "Bowl")
        database.spots.update_one({"name": "Bowl"}, {"$set": {"approvalStatus": "private"}})
        _until_gone(database, "Bowl")
        database.trickipedia.delete_one({"name": "Ollie"})
        _until_gone(database, "Ollie")
        database.coaching.insert_one(
            {"title": "Fear", "text": "Breathe out before you drop.", "sport": "skateboarding"}
        )
        _until_text(database, "Breathe out")
        database.coaching.drop()
        _until_gone(database, "Breathe out")
        eventually(lambda: running.metric("freshness_searchable_lag_seconds_count") == 1, "the canary")
        assert running.metric('freshness_events_total{outcome="received"') == sum(
            running.metric(f'freshness_events_total{{outcome="{outcome}"')
            for outcome in ("applied", "unchanged", "deleted", "superseded", "dead_lettered")
        )
        assert running.stop() == 0
    assert command("verify", "--json", env=env).value["ok"] is True


def test_a_restart_embeds_nothing_again(
    tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]], fake: Embedder
) -> None:
    """What is stored is not embedded again, by a restart, a backfill or a save without change."""
    database.trickipedia.insert_many([_trick(f"Trick {number}") for number in range(30)])
    with worker(tmp_path, env) as running:
        running.until_ready()
        assert running.stop() == 0
    before = fake.counters()["texts"]
    with worker(tmp_path, env) as running:
        running.until_ready()
        database.trickipedia.update_many({}, {"$set": {"updatedAt": 1, "viewCount": 7}})
        assert command("backfill", "--json", env=env).code == 0
        assert running.stop(signal.SIGINT) == 0
    assert fake.counters()["texts"] == before
    assert database.knowledge_chunks.count_documents({}) == 30


def test_an_undo_embeds_nothing(
    tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]], fake: Embedder
) -> None:
    """An edit taken back, a document deleted and saved anew: their texts were embedded before, and are not again."""
    first = _trick("Undo", description="Before.")
    database.trickipedia.insert_one(first)
    with worker(tmp_path, env) as running:
        running.until_ready()
        database.trickipedia.update_one({"name": "Undo"}, {"$set": {"description": "After."}})
        _until_text(database, "After.")
        before = fake.counters()["texts"]
        database.trickipedia.update_one({"name": "Undo"}, {"$set": {"description": "Before."}})
        _until_text(database, "Before.")
        database.trickipedia.delete_one({"name": "Undo"})
        _until_gone(database, "Before.")
        database.trickipedia.insert_one(first)
        _until_text(database, "Before.")
        assert fake.counters()["texts"] == before
        assert running.stop() == 0
    assert command("verify", "--json", env=env).value["ok"] is True


def test_a_second_worker_stands_by_and_takes_over(
    tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]]
) -> None:
    """The second is ready as standby; when the first is killed it leads, and nothing was lost between them."""
    with worker(tmp_path, env) as first:
        first.until_ready()
        with worker(tmp_path, env) as second:
            told = eventually(lambda: (t := second.readiness()).get("role") == "standby" and t, "a standby")
            assert told == {"ready": True, "role": "standby", "reasons": []}
            first.child.kill()
            database.trickipedia.insert_one(_trick("Kickflip"))
            second.until_ready()
            _until_text(database, "How to Kickflip.")
            assert second.stop() == 0
    assert database.freshness_leases.find_one({"_id": "worker"}) is not None


def test_a_refused_key_pauses_and_loses_nothing(
    tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]], fake: Embedder
) -> None:
    """401: the worker stays up, says what to do on /readyz, dead-letters nothing."""
    fake.script({"*": {"kind": "status", "status": 401, "body": '{"error":{"code":401,"message":"no"}}'}})
    with worker(tmp_path, env) as running:
        database.trickipedia.insert_one(_trick("Heelflip"))
        reasons = eventually(
            lambda: [r for r in running.readiness().get("reasons", []) if "embedding_refused" in r], "the pause"
        )
        assert KEY not in "".join(reasons)
        assert running.page("/readyz")[0] == 503
        assert database.freshness_dead_letters.count_documents({}) == 0
        assert running.stop() == 0
        assert KEY not in running.log.read_text()
    fake.script({"*": {}})
    with worker(tmp_path, env) as running:
        _until_text(database, "How to Heelflip.")
        assert running.stop() == 0


def test_one_poison_document_steps_aside(
    tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]], fake: Embedder
) -> None:
    """A text the provider refuses is dead-lettered alone; it is listed, retried, and cleared by a newer version."""
    fake.script({"*": {"kind": "poison", "word": "xyzzy"}})
    tricks = [_trick(f"Good {number}") for number in range(20)]
    database.trickipedia.insert_many([*tricks, _trick("Bad", description="xyzzy")])
    with worker(tmp_path, env) as running:
        running.until_ready()
        assert database.knowledge_chunks.count_documents({}) == 20
        listed = command("dead-letters", "list", "--json", env=env).value["deadLetters"]
        assert [letter["source"] for letter in listed] == ["trickipedia"]
        assert "xyzzy" not in str(listed)
        row = database.freshness_dead_letters.find_one() or {}
        assert listed[0]["version"] == {"t": row["version"].time, "i": row["version"].inc}
        assert listed[0]["digest"] == row["digest"]
        assert re.fullmatch("[0-9a-f]{64}", listed[0]["digest"])
        assert command("dead-letters", "retry", "--json", env=env).value["stillDead"] == [listed[0]["key"]]
        tried = command("dead-letters", "list", "--json", env=env).value["deadLetters"][0]["tries"]
        assert tried == 2
        database.trickipedia.update_one({"name": "Bad"}, {"$set": {"description": "xyzzy in other words"}})
        eventually(
            lambda: [letter["tries"] for letter in database.freshness_dead_letters.find()] == [1],
            "tries counted anew for another content",
        )
        database.trickipedia.update_one({"name": "Bad"}, {"$set": {"description": "Good now."}})
        _until_text(database, "Good now.")
        assert command("dead-letters", "list", "--json", env=env).value["deadLetters"] == []
        assert running.stop() == 0


def test_verify_finds_and_repairs_what_was_broken_by_hand(
    env: dict[str, str], database: Database[dict[str, Any]]
) -> None:
    """Each kind of difference is named, mended through the pipeline, and gone afterwards."""
    database.trickipedia.insert_many([_trick(f"Trick {number}") for number in range(6)])
    assert command("backfill", "--json", env=env).value["embeddings"] == 6
    chunks = database.knowledge_chunks
    ids = [row["_id"] for row in chunks.find({}, {"_id": 1}).sort("_id")]
    chunks.delete_one({"_id": ids[0]})
    chunks.update_one({"_id": ids[1]}, {"$set": {"contentHash": "0"}})
    chunks.update_one({"_id": ids[2]}, {"$set": {"model": "other/model"}})
    chunks.update_one({"_id": ids[3]}, {"$set": {"text": "changed by hand"}})
    chunks.insert_one({**(chunks.find_one({"_id": ids[4]}) or {}), "_id": f"{ids[4]}-copy"})
    chunks.insert_one({"_id": "stray", "source": "trickipedia", "docId": "1", "text": "nobody's"})
    found = command("verify", "--json", env=env)
    kinds = ("missing", "stale", "orphaned", "duplicated", "wrongModel")
    assert found.code == 1
    assert {kind: found.value[kind] for kind in kinds} == {
        "missing": 1, "stale": 2, "orphaned": 1, "duplicated": 1, "wrongModel": 1,
    }  # fmt: skip
    assert command("backfill", "--source", "coaching", "--json", env=env).code == 0  # another source's strays stay
    repaired = command("verify", "--repair", "--json", env=env)
    assert (repaired.code, repaired.value["ok"], repaired.value["repaired"]) == (0, True, 6)
    assert command("verify", "--json", env=env).code == 0
    assert chunks.count_documents({}) == 6


def test_a_scan_sweeps_what_no_document_owns(env: dict[str, str], database: Database[dict[str, Any]]) -> None:
    """A chunk row of nobody goes with the next scan of its source; what documents own stays."""
    database.trickipedia.insert_one(_trick("Ollie"))
    assert command("backfill", "--json", env=env).code == 0
    database.knowledge_chunks.insert_many(
        [
            {"_id": "stray", "source": "trickipedia", "docId": "1", "text": "nobody's"},
            {"_id": 7, "source": "trickipedia", "docKey": "trickipedia/n:404", "text": "of a document that never was"},
        ]
    )
    assert command("backfill", "--json", env=env).code == 0
    assert [row["title"] for row in database.knowledge_chunks.find()] == ["Ollie"]


def test_search_answers_from_what_the_worker_stored(
    tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]]
) -> None:
    """The same text as a query finds its chunk first, with score, pin and engine in the one JSON value."""
    database.trickipedia.insert_many([_trick("Ollie"), _trick("Nollie"), _trick("Air", category="Surfing")])
    with worker(tmp_path, env) as running:
        running.until_ready()
        text = next(text for text in _texts(database) if "Nollie" in text)
        brain = {name: value for name, value in env.items() if not name.startswith("WORKER_")}
        found = command("search", text, "--json", env=brain, module="brain").value
        assert found["hits"][0]["title"] == "Nollie"
        assert found["hits"][0]["score"] == pytest.approx(1.0, abs=1e-5)
        assert (found["engine"], found["pin"]["model"]) == ("exact", "openai/text-embedding-3-small")
        surf = command("search", text, "--sport", "surf", "--json", env=brain, module="brain").value
        assert [hit["title"] for hit in surf["hits"]] == ["Air"]
        assert running.stop() == 0


def test_an_unreachable_database_is_waited_for(tmp_path: Path, env: dict[str, str]) -> None:
    """`run` stays up, alive and not ready, and ends cleanly; one-shot commands give up with 75."""
    lost = {**env, "ATLAS_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300"}
    with worker(tmp_path, lost) as running:
        eventually(lambda: any("database" in r for r in running.readiness().get("reasons", [])), "the pause")
        assert running.page("/healthz")[0] == 200
        assert running.stop() == 0
    for name in ("status", "backfill", "verify", "check-config"):
        done = command(name, "--json", env=lost)
        assert done.code == 75, done.err
        assert done.value["error"]["exitCode"] == 75
