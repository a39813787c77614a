"""A source that leaves WORKER_SOURCES and comes back: what changed meanwhile was told to nobody, and is found."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.crashes import Store, trick
from tests.support.oracle import CLEAN, Oracle, conserved
from tests.support.processes import Embedder, command, eventually, worker

pytestmark = pytest.mark.slow

BOTH = {"WORKER_SOURCES": "trickipedia,coaching"}
ONE = {"WORKER_SOURCES": "trickipedia"}


def _tips(database: Store) -> set[str]:
    return {row["text"].partition("\n\n")[2] for row in database.knowledge_chunks.find({"source": "coaching"})}


def _tip(number: int, says: str) -> dict[str, Any]:
    return {"_id": number, "title": "Tip", "text": says}


def _fill(database: Store) -> None:
    database.trickipedia.insert_one(trick("Ollie", "Pop."))
    database.coaching.insert_many([_tip(1, "Old words."), _tip(2, "To be deleted."), _tip(3, "The same.")])


def _change(database: Store) -> None:
    database.coaching.update_one({"_id": 1}, {"$set": {"text": "New words."}})
    database.coaching.delete_one({"_id": 2})
    database.coaching.insert_one(_tip(4, "Another."))


def _lead_once(folder: Path, env: dict[str, str]) -> None:
    with worker(folder, env) as running:
        running.until_ready()
        assert running.stop() == 0


def test_its_changes_are_found_before_it_is_ready(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """Edited, deleted, inserted while only the other one was watched; the scan is counted under its own reason."""
    _fill(database)
    _lead_once(tmp_path, env | BOTH)
    with worker(tmp_path, env | ONE) as running:
        running.until_ready()
        _change(database)
        database.trickipedia.insert_one(trick("Kickflip", "Flick."))
        moved = lambda: database.knowledge_chunks.find_one({"title": "Kickflip"}) is not None  # noqa: E731 - said once
        eventually(moved, "what the stream tells after the changes")
        assert running.stop() == 0
    embedded = fake.counters()["texts"]
    with worker(tmp_path, env | BOTH) as running, Oracle(env | BOTH, ["trickipedia", "coaching"]) as oracle:
        running.until_ready()
        assert _tips(database) == {"New words.", "The same.", "Another."}
        assert running.metric('freshness_resyncs_total{reason="source_added"}') == 1
        assert oracle.differences() == CLEAN
        conserved(running)
        assert running.stop() == 0
    assert fake.counters()["texts"] == embedded + 2
    with worker(tmp_path, env | BOTH) as running:
        running.until_ready()
        assert running.metric("freshness_resyncs_total") == 0, "it is scanned once, not at every start"
        assert running.stop() == 0


def test_a_row_of_an_older_version_is_believed_of_no_source(
    tmp_path: Path, env: dict[str, str], database: Store
) -> None:
    """It does not say what was watched: everything is looked at once more, from the same position."""
    _fill(database)
    _lead_once(tmp_path, env | BOTH)
    _change(database)
    database.freshness_checkpoints.update_one({"_id": "stream"}, {"$unset": {"sources": ""}})
    with worker(tmp_path, env | BOTH) as running:
        running.until_ready()
        assert running.metric('freshness_resyncs_total{reason="source_added"}') == 2
        assert _tips(database) == {"New words.", "The same.", "Another."}
        assert running.stop() == 0
    row = database.freshness_checkpoints.find_one({"_id": "stream"}) or {}
    assert row["sources"] == ["coaching", "trickipedia"]


def test_a_command_with_other_sources_changes_nothing_for_the_worker(
    tmp_path: Path, env: dict[str, str], database: Store
) -> None:
    """It moves no position, so what that says of the other source stays; what it scanned needs no other scan."""
    _fill(database)
    _lead_once(tmp_path, env | ONE)
    assert command("backfill", env=env | BOTH).code == 0
    assert command("backfill", env=env | ONE).code == 0
    _change(database)
    with worker(tmp_path, env | BOTH) as running:
        running.until_ready()
        eventually(lambda: _tips(database) == {"New words.", "The same.", "Another."}, "the changes, by the stream")
        assert running.metric("freshness_resyncs_total") == 0
        assert running.stop() == 0
