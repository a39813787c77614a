"""Two generations in one database, over both drivers: the row that names them, and the chunks that both hold."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.chunk import Vector, text_hash
from brain.knowledge.pin import ACTIVE, PINS, Model, Pin
from brain.knowledge.pins import active_pin
from tests.contract.test_knowledge_store import KICKFLIP, OLLIE, at, draft, publication
from worker.clock import SystemClock
from worker.errors import ConfigurationFault, FencedOff, PinRefused
from worker.generations import Generations
from worker.model import Delta, DocKey, Leadership, Publication
from worker.mongo.capacity import capacity
from worker.mongo.driver import Database
from worker.mongo.indexes import ensure_indexes
from worker.mongo.knowledge import MongoKnowledge
from worker.mongo.lease import MongoLease
from worker.mongo.pins import MongoPins, ensure_pinned

Backend = AsyncDatabase[dict[str, Any]]
NEXT: Final = Pin("next/model", 3, "knowledge_chunks_next", "knowledge_vec_next")


@pytest.fixture
async def leader(database: Database, pin: Pin) -> Leadership:
    """Who may write, where both generations live."""
    await ensure_indexes(database, pin)
    await ensure_indexes(database, NEXT)
    await ensure_pinned(database, Model(pin.model, pin.dimensions, 512))
    leadership = await MongoLease(database, SystemClock()).acquire()
    assert leadership is not None
    return leadership


@pytest.fixture
def store(database: Database, pin: Pin) -> MongoKnowledge:
    """The store of both."""
    return MongoKnowledge(database, pin, SystemClock(), (NEXT,))


def other_vector(text: str) -> Vector:
    """What the other model says of a text: of another width."""
    return np.array([len(text), -1.0, 0.5], dtype=np.float32)


def both(key: DocKey, second: int, *texts: str, beside: Sequence[str] | None = None) -> Publication:
    """What a document publishes that has these texts in both, or others in the one beside."""
    mine = publication(key, at(second), *texts)
    drafts = tuple(draft(key, f"p{n}", text) for n, text in enumerate(texts if beside is None else beside))
    vectors = {one.text_hash: other_vector(one.text) for one in drafts}
    return replace(mine, beside={NEXT: Publication(Delta(key, at(second), write=drafts), vectors)})


async def texts_of(backend: Backend, collection: str) -> dict[str, str]:
    """What a generation holds."""
    return {row["_id"]: row["text"] async for row in backend[collection].find({}, {"text": 1})}


# --- the row ---


async def test_each_change_is_one_write_of_one_row(
    database: Database, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """Build, switch, roll back, drop; what the brain reads as active moves with the switch, other fields stay."""
    pins = MongoPins(database)
    await backend[PINS].update_one({"_id": ACTIVE}, {"$set": {"note": "ours"}})
    assert await pins.load() == Generations(pin)
    assert await pins.change("build", NEXT, leader) == Generations(pin, NEXT, "next", turn=1)
    assert await active_pin(backend) == pin
    assert await pins.change("switch", NEXT, leader, 1) == Generations(NEXT, pin, "previous", turn=2)
    assert await active_pin(backend) == NEXT
    assert await pins.change("rollback", pin, leader) == await pins.load() == Generations(pin, NEXT, "next", turn=3)
    with pytest.raises(PinRefused, match="changed since"):
        await pins.change("drop", NEXT, leader, 2)
    assert await pins.change("drop", NEXT, leader, 3) == Generations(pin, leaving=(NEXT.collection,), turn=4)
    rows = [row async for row in backend[PINS].find({})]
    assert [(row["_id"], row["note"]) for row in rows] == [(ACTIVE, "ours")]


async def test_a_change_whose_answer_was_lost_is_done_once(database: Database, leader: Leadership, pin: Pin) -> None:
    """Asked again it changes nothing."""
    pins = MongoPins(database)
    for act in ("build", "switch"):
        assert await pins.change(act, NEXT, leader) == await pins.change(act, NEXT, leader)
    assert await pins.load() == Generations(NEXT, pin, "previous", turn=2)


async def test_a_former_leader_changes_nothing(database: Database, leader: Leadership, pin: Pin) -> None:
    """FencedOff, also for the removal."""
    pins, former = MongoPins(database), Leadership(leader.epoch - 1)
    with pytest.raises(FencedOff):
        await pins.change("build", NEXT, former)
    await pins.change("build", NEXT, leader)
    await pins.change("drop", NEXT, leader)
    with pytest.raises(FencedOff):
        await pins.clear(former)
    assert (await pins.load()).leaving == (NEXT.collection,)


async def test_what_is_refused_changes_nothing(database: Database, leader: Leadership, pin: Pin) -> None:
    """By the rules, or by what this process could not lead with."""

    def admit(after: Generations) -> None:
        if NEXT in after.live:
            message = "no key"
            raise PinRefused(message)

    with pytest.raises(PinRefused, match="no key"):
        await MongoPins(database, admit).change("build", NEXT, leader)
    with pytest.raises(PinRefused, match="active"):
        await MongoPins(database).change("drop", pin, leader)
    assert await MongoPins(database).load() == Generations(pin)


@pytest.mark.parametrize(
    "damage", [{"beside": {"model": "x"}}, {"beside": {**NEXT.as_row(), "role": "?"}}, {"index": 7}]
)
async def test_a_damaged_row_is_told(
    database: Database, leader: Leadership, backend: Backend, damage: dict[str, object]
) -> None:
    """And nothing is guessed."""
    change = {"$unset": {"model": ""}} if "index" in damage else {"$set": damage}
    await backend[PINS].update_one({"_id": ACTIVE}, change)
    with pytest.raises(ConfigurationFault, match="by hand"):
        await MongoPins(database).load()


async def test_what_leaves_is_removed_and_forgotten(
    database: Database, leader: Leadership, store: MongoKnowledge, backend: Backend, pin: Pin
) -> None:
    """Its collection is gone, the other one is as it was, and a second time does nothing."""
    pins = MongoPins(database)
    await pins.change("build", NEXT, leader)
    await store.publish([both(OLLIE, 1, "Pop")], leader)
    await pins.change("drop", NEXT, leader)
    assert await pins.clear(leader) == (NEXT.collection,)
    assert NEXT.collection not in await database.collections()
    assert await texts_of(backend, pin.collection) == {"trickipedia/n:1/p0": "Pop"}
    assert await pins.clear(leader) == ()
    assert await pins.load() == Generations(pin, turn=2)


# --- the chunks ---


async def test_both_are_written_in_one_transaction(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """One ledger row, and in each generation the chunks with its own model's vectors."""
    assert await store.publish([both(OLLIE, 1, "Pop", beside=("P", "op"))], leader) == ["applied"]
    assert await texts_of(backend, pin.collection) == {"trickipedia/n:1/p0": "Pop"}
    assert await texts_of(backend, NEXT.collection) == {"trickipedia/n:1/p0": "P", "trickipedia/n:1/p1": "op"}
    row = await backend[NEXT.collection].find_one({"text": "P"})
    assert row is not None
    assert (row["model"], row["dimensions"], len(row["embedding"])) == (NEXT.model, 3, 2 + 3 * 4)
    state = (await store.states([OLLIE, KICKFLIP]))[OLLIE]
    assert [chunk.model for chunk in state.chunks] == [pin.model]
    assert [chunk.model for chunk in state.beside[NEXT]] == [NEXT.model, NEXT.model]
    assert (await store.states([KICKFLIP]))[KICKFLIP].beside == {NEXT: ()}
    assert await backend.freshness_documents.count_documents({}) == 1


async def test_a_failure_in_one_stores_nothing_in_either(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """The second generation's write breaks: the first one's is not there."""
    good = both(OLLIE, 1, "Pop")
    broken = replace(good, beside={NEXT: replace(good.beside[NEXT], vectors={})})
    with pytest.raises(KeyError):
        await store.publish([broken], leader)
    assert await texts_of(backend, pin.collection) == {}
    assert await backend.freshness_documents.count_documents({}) == 0
    with pytest.raises(FencedOff):
        await store.publish([good], Leadership(leader.epoch - 1))
    assert await texts_of(backend, NEXT.collection) == {}


async def test_an_older_version_changes_neither(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """There is one version for both."""
    await store.publish([both(OLLIE, 5, "new")], leader)
    assert await store.publish([both(OLLIE, 4, "old")], leader) == ["superseded"]
    for collection in (pin.collection, NEXT.collection):
        assert list((await texts_of(backend, collection)).values()) == ["new"]


async def test_vectors_are_found_by_model_in_any_generation(
    store: MongoKnowledge, database: Database, leader: Leadership, pin: Pin
) -> None:
    """Each model's own, never the other's; another generation of the same model has them too, and the shelf."""
    await store.publish([both(OLLIE, 1, "Pop")], leader)
    digest = text_hash("Pop")
    assert np.array_equal((await store.vectors([digest], NEXT))[digest], other_vector("Pop"))
    assert (await store.vectors([digest]))[digest].shape == (pin.dimensions,)
    again = replace(pin, collection="knowledge_chunks_again")
    rebuilt = MongoKnowledge(database, pin, SystemClock(), (again,))
    assert (await rebuilt.vectors([digest], again))[digest].shape == (pin.dimensions,)
    stranger = replace(NEXT, model="strange/model")  # of the same width
    assert await MongoKnowledge(database, pin, SystemClock(), (stranger,)).vectors([digest], stranger) == {}
    await store.publish([both(OLLIE, 2, "Snap")], leader)
    assert np.array_equal((await store.vectors([digest], NEXT))[digest], other_vector("Pop"))
    assert (await store.vectors([digest]))[digest].shape == (pin.dimensions,)


async def test_the_shelf_has_room_for_both(store: MongoKnowledge, leader: Leadership) -> None:
    """What one generation puts away does not push out the other's."""
    before = [f"text {n}" for n in range(16)]
    await store.publish([both(OLLIE, 1, *before)], leader)
    await store.publish([both(OLLIE, 2, *(f"new {n}" for n in range(16)))], leader)
    digests = [text_hash(text) for text in before]
    assert len(await store.vectors(digests)) == len(await store.vectors(digests, NEXT)) == 16


async def test_strays_are_swept_and_rows_discarded_in_each(
    store: MongoKnowledge, leader: Leadership, backend: Backend, pin: Pin
) -> None:
    """A row that no document owns goes from both; a damaged one from its own generation alone."""
    await store.publish([both(OLLIE, 1, "Pop")], leader)
    for collection in (pin.collection, NEXT.collection):
        await backend[collection].insert_one({"_id": "x/1/p", "docKey": "x/1", "source": "trickipedia", "text": "x"})
    assert await store.sweep_strays("trickipedia", leader) == 2
    gone = replace(NEXT, collection="knowledge_chunks_gone")
    assert await store.discard(["trickipedia/n:1/p0"], leader, gone) == 0
    assert await store.discard(["trickipedia/n:1/p0"], leader, NEXT) == 1
    assert await texts_of(backend, NEXT.collection) == {}
    assert await texts_of(backend, pin.collection) == {"trickipedia/n:1/p0": "Pop"}


async def test_room_is_measured_by_what_is_there(store: MongoKnowledge, database: Database, leader: Leadership) -> None:
    """More for a wider model; without vector search no index is counted, and nothing is certain to fail."""
    await store.publish([both(OLLIE, 1, "Pop")], leader)
    pin = Pin("test/model", 4)
    narrow = await capacity(database, pin, Model("x/narrow", 4, 512))
    wide = await capacity(database, pin, Model("x/wide", 3072, 512))
    assert 0 < narrow.needed < wide.needed
    assert wide.needed - narrow.needed == 4 * 3068
    assert (narrow.search_indexes, narrow.warnings, narrow.short) == (None, (), None)
    nowhere = await capacity(database, replace(pin, collection="knowledge_chunks_nowhere"), Model("x/new", 4, 512))
    assert (nowhere.needed, nowhere.short) == (0, None)
    assert replace(wide, free=100).short is not None
    assert len(replace(wide, search_indexes=10, held=10**9).warnings) == 3
