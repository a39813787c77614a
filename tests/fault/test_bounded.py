"""However long an outage, however large a delete, a backlog or a document: memory stays bounded and it converges."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.crashes import Record, Store, show, trick, until_called, until_leading
from tests.support.oracle import CLEAN, Oracle, conserved, rss_mb
from tests.support.processes import Embedder, Worker, eventually, worker
from worker.pipeline.leader import CAPACITY

pytestmark = pytest.mark.slow

CEILING_MB: Final = 300.0
"""Resident memory of a worker (the project's own figure for an hour of outage)."""

HUGE_MB: Final = 500.0
"""Likewise while one document of 10 MB is split, edited and deleted; the unit and PM2 allow 700."""

LONG: Final = 180.0  # seconds: a bound for what is much work on a busy machine
OUTAGE_SECONDS: Final = 60
A_SECOND: Final = 50
WAITING: Final = 5500
"""Documents that come in at the outage's begin: more than `CAPACITY`, so that the stream is not read further. They say
the same, so that one vector is enough for all of them afterwards."""

FLAT_MB: Final = 20.0
"""Growth while nothing more is taken in. Allocators breathe by megabytes; `test_long_outage` counts by the kilobyte."""

MANY: Final = 60_000
EVENTS: Final = 200_000


@pytest.fixture
def mongo_uri(long_uri: str) -> str:
    """Where all of it fits into the history."""
    return long_uri


class Scale:
    """Weighs a worker whenever it is asked."""

    def __init__(self, running: Worker, ceiling: float = CEILING_MB) -> None:
        self._ceiling = ceiling
        self._pid = running.child.pid
        self.first = self.most = rss_mb(self._pid)

    def weigh(self) -> float:
        """Its memory now; the most is kept, and must stay under the ceiling."""
        now = rss_mb(self._pid)
        self.most = max(self.most, now)
        assert now < self._ceiling, f"{now:.0f} MB"
        return now

    def until(self, holds: Callable[[], bool], what: str) -> float:
        """Weigh until it holds; how many seconds that took."""
        began = time.monotonic()
        eventually(lambda: self.weigh() and holds(), what, LONG)
        return time.monotonic() - began

    def line(self) -> str:
        """What was weighed."""
        return f"memory {self.first:.0f} MB at first, {self.most:.0f} MB at most"


def _settled(running: Worker) -> float:
    received = running.metric('freshness_events_total{outcome="received"')
    return received - running.metric("freshness_queue_depth")


def test_an_outage_of_the_embedder(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder, record_property: Record
) -> None:
    """A minute without embedder at 50 changes a second, of more documents than the worker takes in hand.

    Full after moments, flat from then on, loud, and caught up afterwards.
    """
    edited = database.trickipedia.insert_many([trick(f"Trick {n}", f"Says {n}.") for n in range(500)]).inserted_ids
    with worker(tmp_path, env) as running, Oracle(env) as oracle:
        until_leading(running)
        scale = Scale(running)
        fake.script({"*": {"kind": "status", "status": 503}})
        began, turn = time.monotonic(), 0
        database.trickipedia.insert_many([trick("New", "Says the same.") for _ in range(WAITING)])
        scale.until(lambda: running.metric("freshness_in_flight") == CAPACITY, "as much in hand as it takes")
        full = scale.weigh()
        while time.monotonic() - began < OUTAGE_SECONDS:
            turn += 1
            says = {"$set": {"description": f"Edited in turn {turn}."}}
            database.trickipedia.update_one({"_id": edited[turn % len(edited)]}, says)
            scale.weigh()
            time.sleep(max(0.0, began + turn / A_SECOND - time.monotonic()))  # the pace of the editors
        grown = scale.weigh() - full
        assert grown < FLAT_MB
        assert running.metric("freshness_in_flight") == CAPACITY
        assert running.metric("freshness_watermark_age_seconds") > OUTAGE_SECONDS - 10
        assert running.page("/readyz")[0] == 503
        fake.script({"*": {}})
        took = scale.until(lambda: not running.metric("freshness_in_flight"), "an outcome for what waited")
        took += scale.until(lambda: oracle.differences() == CLEAN, "convergence after the outage")
        conserved(running)
        assert running.stop() == 0
    show(
        record_property,
        f"outage    {turn + WAITING} changes in {OUTAGE_SECONDS} s without embedder, {CAPACITY} in hand, "
        f"{scale.line()}, {grown:+.0f} MB while full, clean in {took:.1f} s",
    )


def test_a_backlog_and_a_great_delete(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder, record_property: Record
) -> None:
    """200,000 events that wait at the start, then one `delete_many` of 60,000: bounded, nothing is left over."""
    spots = database.spots
    with worker(tmp_path, env) as running:
        until_leading(running)
        assert running.stop() == 0
    shown = {"approvalStatus": "approved", "city": "Porto", "latitude": 1.0, "longitude": 2.0}
    hidden = {"approvalStatus": "pending", "city": "Porto"}
    for start in range(0, MANY, 5000):
        rows = [{"name": f"Spot {n}", **(hidden if n % 100 else shown)} for n in range(start, start + 5000)]
        spots.insert_many(rows, ordered=False)
    for turn in range(1, EVENTS // MANY):
        spots.update_many({}, {"$set": {"googlePlacesCachedAt": turn}})
    rest = [row["_id"] for row in spots.find({}, {"_id": 1}).limit(EVENTS % MANY)]
    for start in range(0, len(rest), 1000):
        spots.update_many({"_id": {"$in": rest[start : start + 1000]}}, {"$set": {"googlePlacesCachedAt": 0}})
    with worker(tmp_path, env) as running:
        eventually(lambda: running.readiness().get("role") == "leader", "a leader", LONG)
        scale = Scale(running)
        chunks = database.knowledge_chunks
        read = scale.until(lambda: chunks.count_documents({}) == MANY // 100, "the chunks of the backlog")
        read += scale.until(lambda: _settled(running) >= EVENTS, "the end of the backlog")
        spots.delete_many({})
        gone = scale.until(lambda: chunks.count_documents({}) == 0, "the end of every chunk")
        gone += scale.until(lambda: _settled(running) >= EVENTS + MANY, "the end of the deletes")
        until_leading(running)
        assert running.stop() == 0
    with Oracle(env) as oracle:
        assert oracle.differences() == CLEAN
    show(record_property, f"backlog   {EVENTS} events in {read:.1f} s, {MANY} deletes in {gone:.1f} s, {scale.line()}")


def test_a_document_of_ten_megabytes(
    tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder, record_property: Record
) -> None:
    """It is split, not dead-lettered: every word of it is stored, its neighbour in the meantime.

    Memory stays bounded, also when it is edited, and when it is deleted, at once and whole.
    """
    sentence = "Bend the knees, look where you go, and let the board come back to you. "
    with worker(tmp_path, env) as running, Oracle(env) as oracle:
        until_leading(running)
        scale = Scale(running, HUGE_MB)
        calls = fake.counters()["calls"]
        said = 10 * 1024 * 1024 // len(sentence)
        database.trickipedia.insert_one(trick("Huge", sentence * said))
        database.trickipedia.insert_one(trick("Ollie", "Pop."))
        until_called(fake, calls)
        took = scale.until(lambda: "Ollie" in set(database.knowledge_chunks.distinct("title")), "its neighbour")
        took += scale.until(lambda: oracle.differences() == CLEAN, "its outcome")
        assert database.freshness_dead_letters.count_documents({}) == 0
        parts = [row["text"] for row in database.knowledge_chunks.find({"title": "Huge"}, {"text": 1})]
        assert sum(text.count("Bend the knees") for text in parts) == said
        embedded = fake.counters()["texts"]
        database.trickipedia.update_one({"name": "Huge"}, {"$set": {"description": sentence * said + "Commit."}})
        took_edit = scale.until(lambda: _says(database, "Commit."), "the edit")
        assert fake.counters()["texts"] - embedded <= 2
        database.trickipedia.update_one({"name": "Ollie"}, {"$set": {"description": "Pop and slide."}})
        scale.until(lambda: _says(database, "Pop and slide.", "Ollie"), "the edit of its neighbour")
        assert running.metric("freshness_stream_reopens_total") <= 1  # B04: an event of its own size stops nothing
        database.trickipedia.delete_one({"name": "Huge"})
        gone = scale.until(lambda: not database.knowledge_chunks.count_documents({"title": "Huge"}), "its end")
        assert running.stop() == 0
    show(
        record_property,
        f"10 MB     {len(parts)} chunks in {took:.1f} s, an edit in {took_edit:.1f} s, deleted in {gone:.1f} s, "
        f"{scale.line()}",
    )


def _says(database: Store, words: str, title: str = "Huge") -> bool:
    return database.knowledge_chunks.count_documents({"title": title, "text": {"$regex": words}}) == 1
