"""The search index of a generation: created, waited for, told in every state; over both drivers."""

from collections.abc import AsyncGenerator, Generator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from bson.binary import Binary, BinaryVectorDtype

from brain.knowledge.connect import Target
from brain.knowledge.pin import Pin
from brain.knowledge.search.index import definition
from brain.knowledge.search.vectors import binary
from tests.contract.conftest import PIN, Backend
from tests.support.fake_mongod import Fail, FakeMongod
from tests.support.fake_mongod.search import BUILDING, FAILED, PENDING, READY, State
from tests.support.fake_mongod.server import DATABASE
from worker.errors import Fatal, IndexMissing, IndexNotReady, IndexUnusable, KnowledgeError, Refused
from worker.mongo.driver import Database, DriverName, connected
from worker.mongo.vector_index import MongoVectorIndex
from worker.vector_index import CEILING_SECONDS, POLL_SECONDS, IndexState, Vectors, ensure

DELETING = State("DELETING", queryable=False)
REBUILDING = State("BUILDING")
WIDER = definition(replace(PIN, dimensions=8))


class PatientClock:
    """A clock on which a wait takes no time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits: list[float] = []

    def now(self) -> datetime:
        """Some moment."""
        return datetime(2026, 11, 30, tzinfo=UTC)

    def monotonic(self) -> float:
        """What has been waited."""
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Count it."""
        self.waits.append(seconds)
        self.seconds += seconds


@pytest.fixture
def server() -> Generator[FakeMongod]:
    """A server with search and one chunk."""
    with FakeMongod() as started:
        started.search.enabled = True
        started.write(PIN.collection, {"_id": "t/o:1/full", "embedding": binary(np.ones(4, np.float32))})
        yield started


@pytest.fixture
async def index(server: FakeMongod, driver: DriverName) -> AsyncGenerator[MongoVectorIndex]:
    """Its indexes."""
    async with connected(Target(server.uri, DATABASE), driver) as opened:
        yield MongoVectorIndex(opened)


async def ensured(index: MongoVectorIndex, *, update: bool = False) -> tuple[IndexState, PatientClock]:
    """What `ensure` came to, and how long it waited."""
    clock = PatientClock()
    return await ensure(index, PIN, clock, update=update), clock


async def test_a_missing_index_is_created_and_waited_for(server: FakeMongod, index: MongoVectorIndex) -> None:
    """With the definition that the engine needs; a look every five seconds until it can be searched."""
    server.search.next_states = (PENDING, BUILDING, BUILDING, READY)
    state, clock = await ensured(index)
    assert clock.waits == [POLL_SECONDS] * 3
    assert (state.ready, state.exists, state.words) == (True, True, "ready")
    assert (state.indexed, state.vectors) == (1, Vectors(fit=1))
    (command,) = server.asked("createSearchIndexes")
    assert command["createSearchIndexes"] == PIN.collection
    assert command["indexes"] == [{"name": PIN.index, "type": "vectorSearch", "definition": definition(PIN)}]
    assert [field["path"] for field in definition(PIN)["fields"]] == ["embedding", "sport", "docType"]


async def test_a_generation_has_its_own(server: FakeMongod, index: MongoVectorIndex) -> None:
    """Its collection, its index's name, its width; the collection need not be there yet."""
    beside = Pin("other/model", 8, "knowledge_chunks_other", "knowledge_vec_other")
    state = await ensure(index, beside, PatientClock())
    assert (state.ready, state.pin, state.vectors) == (True, beside, Vectors())
    assert list(server.search.indexes) == [("knowledge_chunks_other", "knowledge_vec_other")]
    assert (await index.look(PIN)).words.startswith("missing")


async def test_what_is_ready_is_left_alone(server: FakeMongod, index: MongoVectorIndex) -> None:
    """No command is sent, no time passes; more fields and a quantization are the operator's."""
    fields = definition(PIN)["fields"]
    more = [{**fields[0], "quantization": "scalar"}, *fields[1:], {"type": "filter", "path": "source"}]
    server.search.put(PIN.collection, PIN.index, {"fields": more})
    state, clock = await ensured(index)
    assert (state.ready, clock.waits) == (True, [])
    assert not server.asked("createSearchIndexes")
    assert not server.asked("updateSearchIndex")


async def test_another_definition_is_told_and_changed_only_on_demand(
    server: FakeMongod, index: MongoVectorIndex
) -> None:
    """What differs and what to do; while the new one is built the old one answers, and it is not done yet."""
    server.search.put(PIN.collection, PIN.index, WIDER)
    with pytest.raises(IndexUnusable, match="8 dimensions, the pin 4") as caught:
        await ensured(index)
    assert "index ensure --update" in str(caught.value)
    assert not server.asked("updateSearchIndex")
    assert not (await index.status(PIN)).ready
    server.search.next_states = (REBUILDING, REBUILDING, READY)
    state, clock = await ensured(index, update=True)
    assert (state.ready, len(clock.waits)) == (True, 2)
    (command,) = server.asked("updateSearchIndex")
    assert (command["name"], command["definition"]) == (PIN.index, definition(PIN))


@pytest.mark.parametrize(
    ("states", "wanted", "told"),
    [
        ((PENDING, FAILED), IndexUnusable, "FAILED"),
        ((PENDING, State("STALE")), IndexUnusable, "STALE"),
        ((PENDING, State("DOES_NOT_EXIST", queryable=False)), IndexMissing, "vanished"),
        ((PENDING, State("BUILDING", queryable=False, definition=WIDER)), IndexUnusable, "8 dimensions"),
    ],
)
async def test_what_ends_the_wait_at_once(
    server: FakeMongod, index: MongoVectorIndex, states: tuple[State, ...], wanted: type[KnowledgeError], told: str
) -> None:
    """Statuses that waiting does not mend, and a definition that somebody else changes."""
    server.search.next_states = states
    clock = PatientClock()
    with pytest.raises(wanted, match=told):
        await ensure(index, PIN, clock)
    assert clock.waits == [POLL_SECONDS]


@pytest.mark.parametrize("state", [PENDING, BUILDING, DELETING], ids=lambda state: state.status)
async def test_the_wait_has_a_ceiling(server: FakeMongod, index: MongoVectorIndex, state: State) -> None:
    """Two minutes; nothing is broken, and the message says so. Progress was told at each look."""
    server.search.next_states = (state,)
    clock = PatientClock()
    told: list[tuple[str, float]] = []
    with pytest.raises(IndexNotReady, match=state.status):
        await ensure(index, PIN, clock, progress=lambda state, seconds: told.append((state.status, seconds)))
    assert sum(clock.waits) == CEILING_SECONDS
    assert told[:2] == [(state.status, 0.0), (state.status, POLL_SECONDS)]
    assert told[-1] == (state.status, CEILING_SECONDS)


async def test_one_that_is_not_listed_at_once(server: FakeMongod, index: MongoVectorIndex) -> None:
    """Creation answers before the list knows: that is no vanishing."""
    absent = State("DOES_NOT_EXIST", queryable=False)
    server.search.next_states = (absent, absent, BUILDING, READY)
    state, clock = await ensured(index)
    assert (state.ready, len(clock.waits)) == (True, 3)


@pytest.mark.parametrize(("code", "wanted"), [(13, Refused), (4242, Fatal)])
async def test_a_refusal_is_an_error(
    server: FakeMongod, index: MongoVectorIndex, code: int, wanted: type[KnowledgeError]
) -> None:
    """A role that may not create search indexes, a tier that has no more: never taken for a server without search."""
    server.script.always("createSearchIndexes", Fail(code))
    with pytest.raises(wanted) as caught:
        await ensured(index)
    assert type(caught.value) is wanted


async def test_a_server_without_search_needs_none(database: Database) -> None:
    """The embedded server refuses the stage (115): the exact engine serves, and that is ready."""
    index = MongoVectorIndex(database)
    state = await ensure(index, PIN, PatientClock())
    assert (state.supported, state.ready, state.exists) == (False, True, False)
    assert "exact engine" in state.words


def _odd_rows() -> list[dict[str, Any]]:
    right = np.array([3, 0, -4, 0.5], np.float32)
    values: dict[str, object] = {
        "fit": binary(right),
        "fit, the least": Binary(b"\x27\x00" + bytes(15) + b"\x01", 9),
        "fit, a list": [1, 2.0, -3, 0],
        "narrow": binary(right[:3]),
        "wide": binary(np.ones(5, np.float32)),
        "other elements": Binary.from_vector([1, 2, 3, 4], BinaryVectorDtype.INT8),
        "other elements of that length": Binary.from_vector([1] * 16, BinaryVectorDtype.INT8),
        "short list": [1.0, 2.0],
        "empty list": [],
        "list with a text": [1, 2, 3, "4"],
        "zero": binary(np.zeros(4, np.float32)),
        "zero list": [0, 0.0, 0, 0],
        "text": "[1, 2, 3, 4]",
        "number": 7,
        "null": None,
    }
    return [{"_id": name, "embedding": value} for name, value in values.items()] + [{"_id": "absent"}]


ODD = Vectors(fit=3, missing=2, wrong_type=4, wrong_width=5, zero=2)


async def test_vectors_are_told_apart_by_the_server(database: Database, backend: Backend) -> None:
    """Every kind that an index leaves out silently, in binary vectors and in lists; nothing but counts comes back."""
    await backend[PIN.collection].insert_many(_odd_rows())
    vectors = await MongoVectorIndex(database).vectors(PIN)
    assert vectors == ODD
    assert (vectors.chunks, vectors.unfit) == (16, 13)


async def test_the_fake_tells_them_apart_alike(server: FakeMongod, index: MongoVectorIndex) -> None:
    """By MongoDB's order of binary data: a subtype of its own is no vector. Other collections do not count."""
    server.store.rows(PIN.collection).clear()
    for row in _odd_rows():
        server.write(PIN.collection, row)
    generic = {"_id": "generic", "embedding": Binary(b"\x27\x00" + b"\x01" * 16, 0)}
    server.write(PIN.collection, generic)
    server.write("tricks", {"_id": 1})
    assert await index.vectors(PIN) == replace(ODD, wrong_type=5)
    (asked,) = [command for command in server.asked("aggregate") if "$group" in command["pipeline"][0]]
    assert asked["readConcern"] == {"level": "majority"}
