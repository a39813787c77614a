"""The contract of `worker.ports.KnowledgeStore`, over both drivers."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from bson import Timestamp
from bson.binary import Binary
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.chunk import Metadata, Vector, chunk_id, text_hash
from brain.knowledge.pin import Pin
from worker.clock import SystemClock
from worker.errors import Conflict, FencedOff
from worker.model import ChunkDraft, DeadLetter, Delta, DocKey, Leadership, LedgerRow, Publication
from worker.mongo.dead_letters import MongoDeadLetters
from worker.mongo.driver import Database
from worker.mongo.knowledge import MongoKnowledge
from worker.mongo.lease import MongoLease

Backend = AsyncDatabase[dict[str, Any]]
SOURCES = ("trickipedia", "events")
OLLIE = DocKey.of("trickipedia", 1)
KICKFLIP = DocKey.of("trickipedia", "kickflip")
NEVER = Timestamp(4_000_000_000, 1)
"""In the year 2096."""
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
FIELDS = {
    *("_id", "source", "docId", "docKey", "docType", "sport", "title", "text", "url", "trickName", "contentHash"),
    *("textHash", "tokens", "model", "dimensions", "embedding", "sourceVersion", "indexedAt"),
}


def at(seconds: int) -> Timestamp:
    """A version."""
    return Timestamp(1_000_000 + seconds, 1)


def draft(key: DocKey, part: str, text: str, *, title: str = "Ollie") -> ChunkDraft:
    """A chunk of a trick."""
    metadata = Metadata("trick", title, "skateboarding", "/trickipedia/ollie", {"trickName": title})
    return ChunkDraft(chunk_id(str(key), part), text, metadata, text_hash(text), text_hash(text + title), 7)


def vector(seed: str) -> Vector:
    """A vector of four numbers that float32 holds exactly."""
    return np.array([len(seed), 0.5, -0.25, 1.0], dtype=np.float32)


def publication(
    key: DocKey,
    version: Timestamp,
    *texts: str,
    rewrite: Sequence[ChunkDraft] = (),
    remove: Sequence[str] = (),
    refs: Mapping[DocKey, str | None] | None = None,
    face: str | None = None,
    renamed: bool = False,
    deleted: bool = False,
    expires_at: datetime | None = None,
    clears: bool = False,
) -> Publication:
    """What a document with these texts, one a part, publishes."""
    drafts = tuple(draft(key, f"p{n}", text) for n, text in enumerate(texts))
    shown = refs or {}
    row = LedgerRow(key, version, deleted, face, tuple(map(str, shown)), expires_at, tuple(shown.values()))
    delta = Delta(
        key,
        version,
        write=drafts,
        rewrite=tuple(rewrite),
        remove=tuple(remove),
        ledger=row,
        refresh_neighbours=renamed,
        clears_dead_letter=clears,
    )
    return Publication(delta, {one.text_hash: vector(one.text) for one in drafts})


async def test_a_new_document_is_stored_whole(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """The chunk has exactly the contract's fields, the ledger says what stands, and both come back as states."""
    assert await store.publish([publication(OLLIE, at(1), "Pop the tail", face="Ollie")], leader) == ["applied"]
    row = await backend[pin.collection].find_one({})
    assert row is not None
    assert set(row) == FIELDS
    assert (row["source"], row["docId"], row["docKey"]) == ("trickipedia", "1", "trickipedia/n:1")
    assert (row["model"], row["dimensions"], row["sourceVersion"]) == (pin.model, pin.dimensions, at(1))
    assert isinstance(row["embedding"], Binary)
    assert row["embedding"].subtype == 9
    states = await store.states([OLLIE, KICKFLIP])
    ledger = states[OLLIE].ledger
    assert ledger is not None
    assert (ledger.key.raw, ledger.version, ledger.face, ledger.deleted) == (1, at(1), "Ollie", False)
    (chunk,) = states[OLLIE].chunks
    assert (chunk.id, chunk.text_hash) == ("trickipedia/n:1/p0", text_hash("Pop the tail"))
    assert (states[KICKFLIP].ledger, states[KICKFLIP].chunks, states[KICKFLIP].dead) == (None, (), None)


async def test_nothing_to_publish_is_nothing(store: MongoKnowledge, leader: Leadership) -> None:
    """An empty batch does not ask the database for a transaction."""
    assert await store.publish([], leader) == []


async def test_parts_come_and_go_in_one_step(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """A rewrite keeps the vector and replaces the rest; removed parts are gone; the new one is there."""
    await store.publish([publication(OLLIE, at(1), "one", "two")], leader)
    kept = draft(OLLIE, "p0", "one", title="Ollie!")
    await store.publish([publication(OLLIE, at(2), rewrite=[kept], remove=["trickipedia/n:1/p1"])], leader)
    rows = await backend[pin.collection].find({}).to_list()
    assert [(row["_id"], row["title"], row["trickName"]) for row in rows] == [
        ("trickipedia/n:1/p0", "Ollie!", "Ollie!")
    ]
    assert rows[0]["contentHash"] == kept.content_hash
    assert rows[0]["embedding"].as_vector().data == list(vector("one"))
    assert rows[0]["sourceVersion"] == at(2)


async def test_an_older_version_never_overwrites(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """Superseded: neither chunk nor ledger changes, while its neighbours in the batch are stored. An equal one may."""
    await store.publish([publication(OLLIE, at(5), "new")], leader)
    batch = [publication(OLLIE, at(4), "old"), publication(KICKFLIP, at(4), "flick")]
    assert await store.publish(batch, leader) == ["superseded", "applied"]
    rows = await backend[pin.collection].find({}).sort("_id").to_list()
    assert [row["text"] for row in rows] == ["new", "flick"]
    assert await store.publish([publication(OLLIE, at(5), "again")], leader) == ["applied"]


async def test_a_version_that_nobody_has_read_guards_nothing(store: MongoKnowledge, leader: Leadership) -> None:
    """It is later than the database's own time, which no read was; what is written over it guards again."""
    await store.publish([publication(OLLIE, NEVER, "frozen"), publication(KICKFLIP, NEVER, deleted=True)], leader)
    batch = [publication(OLLIE, at(5), "mended"), publication(KICKFLIP, at(5), "back")]
    assert await store.publish(batch, leader) == ["applied", "applied"]
    states = await store.states([OLLIE, KICKFLIP])
    assert [(one.ledger.version, one.ledger.deleted) for one in states.values() if one.ledger] == [(at(5), False)] * 2
    assert [[chunk.version for chunk in one.chunks] for one in states.values()] == [[at(5)]] * 2
    assert await store.publish([publication(OLLIE, at(4), "old")], leader) == ["superseded"]


async def test_a_debt_of_a_time_that_never_was_is_paid(store: MongoKnowledge, leader: Leadership) -> None:
    """By any look: else it would be owed for ever."""
    await store.publish([publication(KICKFLIP, at(1), "after Ollie", refs={OLLIE: None})], leader)
    await store.publish([Publication(Delta(OLLIE, NEVER, refresh_neighbours=True), {})], leader)
    assert await store.owing(SOURCES, 10) == [KICKFLIP]
    await store.publish([publication(KICKFLIP, at(2), "after Ollie", refs={OLLIE: None})], leader)
    assert await store.owing(SOURCES, 10) == []


async def test_a_version_that_is_none_is_written_over(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """Somebody wrote text or nothing there: it is read as later than any, and guards nothing."""
    for damage in (
        {"$set": {"version": "today", "sourceVersion": 7}},
        {"$unset": {"version": "", "sourceVersion": ""}},
    ):
        await store.publish([publication(OLLIE, at(5), "one")], leader)
        await backend["freshness_documents"].update_one({}, damage)
        await backend[pin.collection].update_one({}, damage)
        (state,) = (await store.states([OLLIE])).values()
        assert state.ledger is not None
        assert min(state.ledger.version, *(chunk.version for chunk in state.chunks)) > NEVER
        assert await store.publish([publication(OLLIE, at(6), "one")], leader) == ["applied"]
        assert [chunk.version for chunk in (await store.states([OLLIE]))[OLLIE].chunks] == [at(6)]
        await store.publish([publication(OLLIE, at(6), remove=["trickipedia/n:1/p0"], deleted=True)], leader)
        await backend["freshness_documents"].delete_many({})


async def test_a_deleted_document_does_not_come_back(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """The tombstone holds the version; an older write is superseded; a newer one is a new life."""
    await store.publish([publication(OLLIE, at(1), "one")], leader)
    gone = publication(OLLIE, at(3), remove=["trickipedia/n:1/p0"], deleted=True)
    assert await store.publish([gone], leader) == ["deleted"]
    assert await store.publish([publication(OLLIE, at(2), "late")], leader) == ["superseded"]
    assert await backend[pin.collection].count_documents({}) == 0
    assert await store.page("trickipedia", None, 10) == []
    assert await store.publish([publication(OLLIE, at(4), "back")], leader) == ["applied"]
    assert await store.page("trickipedia", None, 10) == [OLLIE]


async def test_a_former_leader_writes_nothing(
    store: MongoKnowledge, leader: Leadership, other: Database, backend: Backend, pin: Pin
) -> None:
    """After a takeover every write of the old epoch is refused, and nothing of it is stored."""
    await MongoLease(database=other, clock=SystemClock()).release(leader)
    heir = await MongoLease(other, SystemClock()).acquire()
    assert heir is not None
    assert heir.epoch > leader.epoch
    with pytest.raises(FencedOff):
        await store.publish([publication(OLLIE, at(1), "one")], leader)
    with pytest.raises(FencedOff):
        await store.discard(["x"], leader)
    assert await backend[pin.collection].count_documents({}) == 0
    assert await store.publish([publication(OLLIE, at(1), "one")], heir) == ["applied"]


async def test_a_takeover_during_a_publication_decides_for_one(
    store: MongoKnowledge, leader: Leadership, other: Database, backend: Backend, pin: Pin
) -> None:
    """At the same moment: whatever the old epoch stored was stored before the takeover."""
    lease = MongoLease(other, SystemClock())

    async def take_over() -> int:
        await lease.release(leader)
        heir = await lease.acquire()
        assert heir is not None
        return await backend[pin.collection].count_documents({})

    many = [publication(DocKey.of("trickipedia", n), at(1), "text") for n in range(50)]
    outcomes, seen = await asyncio.gather(store.publish(many, leader), take_over(), return_exceptions=True)
    after = await backend[pin.collection].count_documents({})
    if isinstance(outcomes, BaseException):
        assert isinstance(outcomes, FencedOff | Conflict)
        assert after == 0
    else:
        assert seen == after == 50


async def test_a_batch_is_stored_whole_or_not_at_all(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """A fault in the last write (here a vector that is missing) leaves nothing of the first ones."""
    good = publication(OLLIE, at(1), "one")
    bad = publication(KICKFLIP, at(1), "two")
    broken = Publication(bad.delta, {})
    with pytest.raises(KeyError):
        await store.publish([good, broken], leader)
    assert await backend[pin.collection].count_documents({}) == 0
    assert (await store.states([OLLIE]))[OLLIE].ledger is None


async def test_a_thousand_documents_in_one_transaction(store: MongoKnowledge, leader: Leadership) -> None:
    """The outcomes come in the order of the publications (M10)."""
    many = [publication(DocKey.of("trickipedia", n), at(1), f"text {n}") for n in range(1000)]
    assert await store.publish(many, leader) == ["applied"] * 1000
    pages: list[DocKey] = []
    while page := await store.page("trickipedia", str(pages[-1]) if pages else None, 300):
        pages += page
    assert [str(key) for key in pages] == sorted(str(one.delta.key) for one in many)


async def test_a_renamed_neighbour_leaves_a_debt(store: MongoKnowledge, leader: Leadership) -> None:
    """Who names it owes a newer reading, is listed oldest first, and has paid once that reading is published."""
    await store.publish([publication(OLLIE, at(1), "one", face="Ollie", renamed=True)], leader)
    await store.publish([publication(KICKFLIP, at(1), "after Ollie", refs={OLLIE: "Ollie"})], leader)
    assert await store.owing(SOURCES, 10) == []
    assert (await store.states([OLLIE]))[OLLIE].seen_as == {"Ollie"}
    await store.publish([publication(OLLIE, at(5), "one", face="Pop", renamed=True)], leader)
    assert await store.owing(SOURCES, 10) == [KICKFLIP]
    state = (await store.states([KICKFLIP]))[KICKFLIP]
    assert state.ledger is not None
    assert (state.ledger.stale_since, state.ledger.seen) == (at(5), ("Ollie",))
    await store.publish([publication(KICKFLIP, at(4), "after Ollie", refs={OLLIE: "Ollie"})], leader)
    assert await store.owing(SOURCES, 10) == [KICKFLIP]
    await store.publish([publication(KICKFLIP, at(5), "after Pop", refs={OLLIE: "Pop"})], leader)
    assert await store.owing(SOURCES, 10) == []


async def test_a_refresh_alone_leaves_debts_too(store: MongoKnowledge, leader: Leadership) -> None:
    """Without a ledger row of its own, and for readings that are newer than it."""
    await store.publish([publication(KICKFLIP, at(9), "alone", refs={OLLIE: None})], leader)
    refresh = Publication(Delta(OLLIE, at(5), refresh_neighbours=True), {})
    assert await store.publish([refresh], leader) == ["applied"]
    assert await store.owing(SOURCES, 10) == [KICKFLIP]
    assert (await store.states([OLLIE]))[OLLIE].ledger is None


async def test_a_face_that_is_not_so_owes_one_look(store: MongoKnowledge, leader: Leadership) -> None:
    """Whatever the order of publication, also within one batch; shown again, it owes nothing more."""
    await store.publish([publication(OLLIE, at(5), "one", face="Pop", renamed=True)], leader)
    await store.publish([publication(KICKFLIP, at(3), "after Ollie", refs={OLLIE: "Ollie"})], leader)
    assert await store.owing(SOURCES, 10) == [KICKFLIP]
    third, fourth = DocKey.of("trickipedia", 3), DocKey.of("trickipedia", 4)
    batch = [
        publication(third, at(6), "x", refs={fourth: "x"}),
        publication(fourth, at(7), "y", face="y", renamed=True),
    ]
    await store.publish(batch, leader)
    assert set(await store.owing(SOURCES, 10)) == {KICKFLIP, third}
    assert len(await store.owing(SOURCES, 1)) == 1
    assert await store.owing(["events"], 10) == []
    await store.publish([publication(KICKFLIP, at(8), "after Ollie", refs={OLLIE: "Ollie"})], leader)
    assert await store.owing(SOURCES, 10) == [third]


async def test_a_rename_makes_no_debt_of_its_own(store: MongoKnowledge, leader: Leadership) -> None:
    """A document that names itself does not owe itself a reading."""
    await store.publish([publication(OLLIE, at(5), "one", face="a", refs={OLLIE: "a"}, renamed=True)], leader)
    assert await store.owing(SOURCES, 10) == []


async def test_what_has_expired_is_found(store: MongoKnowledge, leader: Leadership) -> None:
    """Up to and with the moment; a document without an end never."""
    event = DocKey.of("events", 1)
    await store.publish([publication(event, at(1), "jam", expires_at=NOON), publication(OLLIE, at(1), "one")], leader)
    assert await store.expired(NOON - timedelta(seconds=1), SOURCES, 10) == []
    assert await store.expired(NOON, SOURCES, 10) == [event]
    assert await store.expired(NOON, ["spots"], 10) == []
    gone = publication(event, at(2), remove=[f"{event}/p0"], deleted=True)
    await store.publish([gone], leader)
    assert await store.expired(NOON, SOURCES, 10) == []


async def test_stored_vectors_are_found_by_text(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """Those of the pinned model alone, exact to the bit; damaged ones are not handed out."""
    await store.publish([publication(OLLIE, at(1), "one", "two", "three")], leader)
    await backend[pin.collection].update_one({"text": "two"}, {"$set": {"model": "another"}})
    await backend[pin.collection].update_one({"text": "three"}, {"$set": {"embedding": [0.0, 0.0, 0.0, 0.0]}})
    found = await store.vectors([text_hash(text) for text in ("one", "two", "three", "never")])
    assert set(found) == {text_hash("one")}
    assert found[text_hash("one")].dtype == np.float32
    assert np.array_equal(found[text_hash("one")], vector("one"))


async def test_a_publication_clears_the_dead_letter(
    store: MongoKnowledge, leader: Leadership, database: Database
) -> None:
    """In the same transaction; a superseded one leaves it."""
    letters = MongoDeadLetters(database)
    await letters.put(DeadLetter(OLLIE, at(1), "d1", "poison", "d", 1, NOON, NOON), leader)
    assert (await store.states([OLLIE]))[OLLIE].dead is not None
    await store.publish([publication(OLLIE, at(2), "one", clears=True)], leader)
    assert await letters.all() == []


async def test_every_chunk_is_audited_and_can_be_discarded(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """Owned and sound, damaged, and written by a stranger; what is discarded is gone."""
    await store.publish([publication(OLLIE, at(1), "one", "two")], leader)
    await backend[pin.collection].update_one({"text": "two"}, {"$set": {"text": "edited"}})
    await backend[pin.collection].insert_one({"_id": 77, "source": "trickipedia", "text": "by hand"})
    audited = {one.id: (one.owner, one.sound) async for one in store.audit()}
    assert audited == {
        "trickipedia/n:1/p0": (OLLIE, True),
        "trickipedia/n:1/p1": (OLLIE, False),
        77: (None, False),
    }
    assert await store.discard([77], leader) == 1
    assert await backend[pin.collection].count_documents({"_id": 77}) == 0
