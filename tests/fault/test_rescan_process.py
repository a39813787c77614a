"""WORKER_RESCAN_HOURS with a real process: a source whose scan is older is scanned again, and swept, at once."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.crashes import Store, trick, until_leading
from tests.support.oracle import CLEAN, Oracle
from tests.support.processes import Embedder, eventually, worker

pytestmark = pytest.mark.slow

TRICKS = 20
SCHEDULED = 'freshness_resyncs_total{reason="scheduled"'


def _age(database: Store, source: str, hours: float) -> None:
    """Let the last scan of a source have ended so long ago."""
    then = datetime.now(UTC) - timedelta(hours=hours)
    done = database.freshness_checkpoints.update_one({"_id": f"scan/{source}"}, {"$set": {"finishedAt": then}})
    assert done.modified_count == 1


def test_an_old_scan_is_repeated_and_sweeps(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """A lost chunk, a scribbled one and one that no document owns, behind the stream's back: all right again.

    Only the source whose scan is older than the setting is scanned, and what is whole costs no embedding.
    """
    database.trickipedia.insert_many([trick(f"Trick {n}", f"Says {n}.") for n in range(TRICKS)])
    database.coaching.insert_one({"title": "Breathe", "text": "In and out."})
    with worker(tmp_path, env) as running:
        until_leading(running)
        assert running.stop() == 0
    chunks = database.knowledge_chunks
    assert chunks.delete_one({"title": "Trick 3"}).deleted_count == 1
    chunks.update_one({"title": "Trick 4"}, {"$set": {"text": "Scribbled.", "contentHash": "scribbled"}})
    stray = {**(chunks.find_one({"title": "Trick 5"}) or {}), "_id": "trickipedia/nobody/0", "sourceId": "nobody"}
    chunks.insert_one(stray)
    _age(database, "trickipedia", 2.0)
    _age(database, "coaching", 0.5)
    embedded = fake.counters()["texts"]
    with worker(tmp_path, {**env, "WORKER_RESCAN_HOURS": "1"}) as running, Oracle(env) as oracle:
        until_leading(running)
        eventually(lambda: oracle.differences() == CLEAN, "what the documents say")
        eventually(lambda: running.metric(SCHEDULED) == 1, "the end of the rescan")
        assert chunks.count_documents({"_id": stray["_id"]}) == 0
        assert fake.counters()["texts"] - embedded <= 2
        assert running.stop() == 0
    with worker(tmp_path, {**env, "WORKER_RESCAN_HOURS": "1"}) as running:
        until_leading(running)
        assert running.metric(SCHEDULED) == 0
        assert running.stop() == 0
