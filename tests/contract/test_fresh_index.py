"""`fresh` where the index lags the collection: on the strict fake of Atlas, with the worker's rows written by hand."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime
from typing import Final

import pytest
from bson import Timestamp

from brain.knowledge.connect import Target, open_client
from brain.knowledge.errors import IndexMissing, KnowledgeError, Refused, Unavailable
from brain.knowledge.fresh import Freshness, Since, fresh
from brain.knowledge.pins import ensure_pin
from brain.knowledge.search.index import definition
from brain.knowledge.search.service import MOST_CHECKED, KnowledgeSearch
from tests.support.fake_mongod import Fail, FakeMongod
from tests.support.fake_mongod.faults import Fault
from tests.support.fake_mongod.search import BUILDING
from tests.support.fake_mongod.server import DATABASE
from tests.support.search_stage import PIN, FixedEmbedder, chunk, vector

LEDGER: Final = "freshness_documents"
SAVED: Final = Timestamp(1000, 5)
WAIT: Final = 20.0
FOUND = Freshness(stored=True, searchable=True)
LAGS = Freshness(stored=True, searchable=False)
UNKNOWN = Freshness(stored=False, searchable=False)


@pytest.fixture
def server() -> Generator[FakeMongod]:
    """A server whose index knows the former chunk of a document that was stored anew at SAVED."""
    with FakeMongod() as started:
        started.search.enabled = True
        index = started.search.put(PIN.collection, PIN.index, definition(PIN))
        index.lagging = [chunk("tricks/s:ollie/full", vector(1), "bmx")]
        started.write(PIN.collection, chunk("tricks/s:ollie/full", vector(0, 1), "bmx", sourceVersion=SAVED))
        started.write(LEDGER, {"_id": "tricks/s:ollie", "version": SAVED, "updatedAt": datetime.now(UTC)})
        yield started


class Asked:
    """`fresh` for the one document."""

    def __init__(self, server: FakeMongod, search: KnowledgeSearch) -> None:
        self.server = server
        self.search = search

    async def __call__(self, since: Timestamp = SAVED, wait: float = 0.0, told: str = "ollie") -> Freshness:
        """The answer."""
        return await fresh(self.search, self.search._database, "tricks", told, Since(since), wait)  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
async def asked(server: FakeMongod) -> AsyncGenerator[Asked]:
    """The question."""
    async with open_client(Target(server.uri, DATABASE)) as client:
        embedder = FixedEmbedder({})
        await ensure_pin(client[DATABASE], embedder.model)
        search = KnowledgeSearch(client[DATABASE], embedder, follow=True)
        yield Asked(server, search)
        server.script.calm()
        await search.close()


async def test_the_index_is_waited_for(server: FakeMongod, asked: Asked) -> None:
    """Stored at once; searchable when the index has taken the new vector in, and the wait ends then."""
    assert await asked() == LAGS
    waiting = asyncio.create_task(asked(wait=WAIT))
    looks = len(server.asked("aggregate"))
    while len(server.asked("aggregate")) < looks + 3:  # noqa: ASYNC110 - the fake has no event for it
        await asyncio.sleep(0.01)
    assert not waiting.done()
    server.search.indexes[PIN.collection, PIN.index].lagging = None
    assert await waiting == FOUND


async def test_what_is_not_as_new_is_not_stored(server: FakeMongod, asked: Asked) -> None:
    """To the increment; another document, another collection; a damaged row; a document that lies as a dead letter."""
    server.search.indexes[PIN.collection, PIN.index].lagging = None
    assert await asked() == FOUND
    assert await asked(since=Timestamp(1000, 6)) == UNKNOWN
    assert await asked(told="kickflip") == UNKNOWN
    server.write("freshness_dead_letters", {"_id": "tricks/s:ollie"})
    assert await asked() == UNKNOWN
    server.delete("freshness_dead_letters", "tricks/s:ollie")
    server.write(LEDGER, {"_id": "tricks/s:ollie", "version": "1000"})
    assert await asked() == UNKNOWN


async def test_a_position_that_has_passed(server: FakeMongod, asked: Asked) -> None:
    """A save that changed nothing moves no row; the worker's position says it was seen, unless a scan is under way."""
    server.search.indexes[PIN.collection, PIN.index].lagging = None
    late = Timestamp(1000, 6)
    server.write("freshness_checkpoints", {"_id": "stream", "at": late})
    assert await asked(since=late) == UNKNOWN
    server.write("freshness_checkpoints", {"_id": "scan/tricks", "done": False})
    assert await asked(since=late) == UNKNOWN
    server.write("freshness_checkpoints", {"_id": "scan/tricks", "done": True})
    assert await asked(since=late) == FOUND
    assert await asked(since=Timestamp(1000, 7)) == UNKNOWN
    assert await asked(since=late, told="hidden") == Freshness(stored=True, searchable=None)


async def test_every_chunk_counts(server: FakeMongod, asked: Asked) -> None:
    """One that the index does not know yet, or leaves out for its vector; of very many the newest are looked at."""
    index = server.search.indexes[PIN.collection, PIN.index]
    index.lagging = None
    for number in range(MOST_CHECKED + 5):
        server.write(PIN.collection, chunk(f"tricks/s:ollie/{number}", vector(1, number), sourceVersion=SAVED))
    assert await asked() == FOUND
    assert len([a for a in server.asked("aggregate") if "$vectorSearch" in a["pipeline"][0]]) <= 2 * MOST_CHECKED
    index.lagging = [row for row in server.store.find(PIN.collection, {}) if row["_id"] != "tricks/s:ollie/3"]
    assert await asked() == LAGS
    index.lagging = None
    server.write(PIN.collection, chunk("tricks/s:ollie/3", vector(0), sourceVersion=Timestamp(2000, 1)))
    assert await asked() == LAGS


async def test_an_index_that_is_being_built_is_waited_for(server: FakeMongod, asked: Asked) -> None:
    """As one that lags; a missing one is an error that somebody must mend."""
    server.search.put(PIN.collection, PIN.index, definition(PIN), BUILDING)
    assert await asked() == LAGS
    server.search.put(PIN.collection, PIN.index, definition(PIN))
    assert await asked(wait=WAIT) == FOUND
    server.search.indexes.clear()
    with pytest.raises(IndexMissing):
        await asked(wait=WAIT)


@pytest.mark.parametrize(("fault", "wanted"), [(Fail(13), Refused), (Fail(462), Unavailable)])
async def test_a_database_that_does_not_answer(
    server: FakeMongod, asked: Asked, fault: Fault, wanted: type[KnowledgeError]
) -> None:
    """An error with its type, not "not stored"."""
    server.script.always("find", fault)
    with pytest.raises(wanted):
        await asked(wait=WAIT)
