"""Noise costs nothing, on a real worker: what changes no text embeds nothing, what changes nothing writes nothing."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import bson
import pytest
from bson import ObjectId
from pymongo.database import Database

from tests.support.processes import Embedder, Worker, command, environment, eventually, worker

Rows = Database[dict[str, Any]]
SETTLED: Final = ("applied", "unchanged", "deleted", "superseded", "dead_lettered")
SOON: Final = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
OLLIE, KICKFLIP, SHUVIT, MANUAL = (ObjectId() for _ in range(4))


@pytest.fixture
def running(tmp_path: Path, mongo_uri: str, database: Rows, fake: Embedder) -> Iterator[Worker]:
    """A ready worker over one document of each kind, and four tricks of which two name the first."""
    _fill(database)
    env = environment(
        ATLAS_URI=mongo_uri,
        ATLAS_DB=database.name,
        OPENROUTER_API_KEY="sk-or-v1-test",
        OPENROUTER_BASE_URL=fake.url,
        WORKER_COALESCE_MS="20",
    )
    with worker(tmp_path, env) as started:
        started.until_ready()
        yield started
        assert started.stop() == 0
    assert command("verify", "--json", env=env).value["ok"] is True


def _trick(identity: ObjectId, name: str, **progression: object) -> dict[str, Any]:
    return {
        "_id": identity,
        "name": name,
        "category": "Skateboarding",
        "difficulty": "Beginner",
        "description": f"The description of trick {str(identity)[-6:]}.",
        "steps": ["Roll.", "Pop."],
        "url": name.lower(),
        "progression": progression,
        "updatedAt": datetime(2026, 1, 1, tzinfo=UTC),
    }


def _edge(target: ObjectId, status: str = "reviewed") -> dict[str, Any]:
    return {"trickId": target, "order": 1, "research": {"status": status}}


def _event() -> dict[str, Any]:
    return {
        "dedupeKey": "jam",
        "slug": "jam",
        "title": "Plaza Jam",
        "description": "Best trick wins.",
        "sports": ["BMX"],
        "startAt": SOON,
        "endAt": SOON + timedelta(hours=3),
        "status": "scheduled",
        "venue": {"name": "Hangar", "city": "Oakland"},
        "lastSeenAt": datetime(2026, 1, 1, tzinfo=UTC),
    }


def _fill(database: Rows) -> None:
    database.trickipedia.insert_many(
        [
            _trick(OLLIE, "Ollie"),
            _trick(KICKFLIP, "Kickflip", prerequisites=[_edge(OLLIE)]),
            _trick(SHUVIT, "Shuvit", nextSteps=[_edge(OLLIE)], prerequisites=[_edge(KICKFLIP, "draft")]),
            _trick(MANUAL, "Manual", related=[_edge(OLLIE)], prerequisites=[_edge(OLLIE, "disputed")]),
        ]
    )
    database.couch_videos.insert_one(
        {"slug": "f", "type": "film", "isPublished": True, "title": "Film", "sportTypes": ["bmx"], "viewCount": 1}
    )
    database.spots.insert_one(
        {"name": "Bowl", "approvalStatus": "approved", "city": "Porto", "state": "PT", "sportTypes": ["bmx"]}
    )
    database.events.insert_one(_event())
    database.riders.insert_one({"canonicalName": "Nadia", "slug": "nadia", "reviewStatus": "published"})
    database.coaching.insert_one({"title": "Fear", "text": "Breathe out.", "sport": "skateboarding"})
    database.docs.insert_one(
        {"_id": "x", "title": "Help", "markdown": "Press start.", "url": "/docs/help", "hash": "1"}
    )


def _chunks(database: Rows) -> dict[str, bytes]:
    """Every chunk row byte for byte, `indexedAt` included."""
    return {row["_id"]: bson.encode(row) for row in database.knowledge_chunks.find().sort("_id")}


def _settle(running: Worker, database: Rows, changes: int, before: float) -> None:
    """Wait until that many more changes have their outcome, and nothing is owed or under way."""

    def figures() -> tuple[float, float]:
        received = running.metric('freshness_events_total{outcome="received"')
        return received, sum(running.metric(f'freshness_events_total{{outcome="{one}"') for one in SETTLED)

    def settled() -> bool:
        received, done = figures()
        owed = database.freshness_documents.count_documents({"staleSince": {"$ne": None}})
        return received >= before + changes and received == done and not owed

    eventually(settled, f"{changes} outcomes")


def _embedded(fake: Embedder) -> int:
    return fake.counters()["texts"]


def _received(running: Worker) -> float:
    return running.metric('freshness_events_total{outcome="received"')


def test_noise_writes_and_embeds_nothing(running: Worker, database: Rows, fake: Embedder) -> None:
    """View counters, place caches, ratings, updatedAt, ingest rewrites, no-op saves: every row stays, byte for byte."""
    eventually(lambda: database.freshness_documents.find_one({"staleSince": {"$ne": None}}) is None, "every debt paid")
    rows, embedded, before = _chunks(database), _embedded(fake), _received(running)
    ledger = list(database.freshness_documents.find().sort("_id"))
    now = datetime.now(UTC)
    database.couch_videos.update_one({}, {"$inc": {"viewCount": 1}})
    database.spots.update_one(
        {},
        {
            "$set": {
                "googlePlaceId": "g",
                "googlePhotos": ["x"],
                "googlePlacesCachedAt": now,
                "rating": 4.5,
                "userPhotos": [],
            }
        },
    )
    seen = database.events.find_one() or {}
    database.events.replace_one({}, {"updatedAt": now, **_event(), "_id": seen["_id"], "lastSeenAt": now})
    for trick in list(database.trickipedia.find()):
        saved = {name: value for name, value in trick.items() if name != "_id"}
        database.trickipedia.update_one({"_id": trick["_id"]}, {"$set": {**saved, "updatedAt": now, "audit": None}})
    database.riders.update_one({}, {"$set": {"updatedAt": now, "couchCredits": [{"filmId": "x"}]}})
    database.coaching.update_one({}, {"$set": {"text": " Breathe  out. ", "status": "published"}})
    database.docs.update_one(
        {}, {"$set": {"updatedAt": now, "hash": "2", "markdown": "<!-- note -->\nPress\nstart.\n"}}
    )
    _settle(running, database, 10, before)
    assert _chunks(database) == rows
    assert _embedded(fake) == embedded
    assert list(database.freshness_documents.find().sort("_id")) == ledger


METADATA: Final = (
    ("trickipedia", {"difficulty": "Advanced"}, {"difficulty": "Advanced"}),
    ("trickipedia", {"category": "Inline Skating"}, {"sport": "rollerblading"}),
    ("trickipedia", {"url": "the-ollie"}, {"url": "/trickipedia/inline-skating/the-ollie"}),
    ("couch_videos", {"slug": "new"}, {"url": "/media/couch/new"}),
    ("couch_videos", {"sportTypes": ["surf"]}, {"sport": "surfing"}),
    ("spots", {"sportTypes": ["surfing"]}, {"sport": "surfing"}),
    ("events", {"sports": ["Skate"]}, {"sport": "skateboarding"}),
    ("riders", {"primarySport": "mtb"}, {"sport": "mtb"}),
    ("coaching", {"skillLevel": "beginner"}, {"skillLevel": "beginner"}),
    ("docs", {"url": "/docs/start"}, {"url": "/docs/start"}),
)


def test_metadata_alone_embeds_nothing(running: Worker, database: Rows, fake: Embedder) -> None:
    """A change of link, difficulty or sport rewrites the metadata of that document's chunk, and embeds nothing."""
    embedded = _embedded(fake)
    for collection, change, told in METADATA:
        rows, before = _chunks(database), _received(running)
        document = database[collection].find_one({}, sort=[("_id", 1)]) or {}
        where = {"source": collection, "docId": str(document["_id"])}
        old = database.knowledge_chunks.find_one(where) or {}
        database[collection].update_one({"_id": document["_id"]}, {"$set": change})
        _settle(running, database, 1, before)
        new = database.knowledge_chunks.find_one(where) or {}
        assert {name: new[name] for name in told} == told
        assert (new["text"], new["textHash"], new["embedding"]) == (old["text"], old["textHash"], old["embedding"])
        after = _chunks(database)
        assert {name for name in rows if rows[name] != after[name]} == {old["_id"]}
    assert _embedded(fake) == embedded


def test_a_rename_reaches_who_names_it_and_nobody_else(running: Worker, database: Rows, fake: Embedder) -> None:
    """Its own chunk (name, slug, link) and the two that name it; drafts, disputed and related edges name nobody."""
    rows, embedded, before = _chunks(database), _embedded(fake), _received(running)
    database.trickipedia.update_one({"_id": OLLIE}, {"$set": {"name": "Boardpop", "url": "boardpop"}})
    eventually(lambda: database.knowledge_chunks.count_documents({"text": {"$regex": "Boardpop"}}) == 3, "three chunks")
    _settle(running, database, 1, before)
    after = _chunks(database)
    moved = database.knowledge_chunks.find({"_id": {"$in": [name for name in rows if rows[name] != after[name]]}})
    assert {row["trickId"] for row in moved} == {str(OLLIE), str(KICKFLIP), str(SHUVIT)}
    own = database.knowledge_chunks.find_one({"trickId": str(OLLIE)}) or {}
    assert (own["title"], own["trickName"], own["url"]) == (
        "Boardpop",
        "Boardpop",
        "/trickipedia/skateboarding/boardpop",
    )
    assert _embedded(fake) == embedded + 3
    assert after.keys() == rows.keys()


def test_an_event_that_ends_leaves_without_a_write(running: Worker, database: Rows, fake: Embedder) -> None:
    """Its chunk goes when its time has come, though nobody touches it; an update of one that is over is silent."""
    before = _received(running)
    ends = datetime.now(UTC) + timedelta(seconds=4)
    database.events.insert_one({"slug": "s", "title": "Short Jam", "startAt": SOON - timedelta(days=60), "endAt": ends})
    eventually(lambda: database.knowledge_chunks.find_one({"title": "Short Jam"}), "the event")
    eventually(lambda: database.knowledge_chunks.find_one({"title": "Short Jam"}) is None, "its end")
    assert datetime.now(UTC) >= ends
    assert database.knowledge_chunks.count_documents({"title": "Plaza Jam"}) == 1
    embedded = _embedded(fake)
    database.events.update_one({"slug": "s"}, {"$set": {"description": "It was great."}})
    _settle(running, database, 2, before)
    assert database.knowledge_chunks.count_documents({"title": "Short Jam"}) == 0
    assert _embedded(fake) == embedded
