"""The exact engine beside a database that changes: on the real embedded server, restarts included."""

import asyncio
import os
import random
from collections.abc import AsyncGenerator, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row, Target, open_client
from brain.knowledge.errors import Unavailable
from brain.knowledge.pin import ACTIVE, PINS, Pin
from brain.knowledge.pins import ensure_pin
from brain.knowledge.search import Filter
from brain.knowledge.search.exact import ExactSearch
from brain.knowledge.search.follow import Followed
from brain.knowledge.search.service import KnowledgeSearch
from brain.knowledge.search.table import VectorTable
from brain.knowledge.search.vectors import stored
from tests.support.following import until
from tests.support.processes import free_port
from tests.support.search_stage import PIN, FixedEmbedder, becomes, chunk, content, held, vector
from tests.support.secantus import secantus

pytestmark = pytest.mark.skipif("TEST_ATLAS_URI" in os.environ, reason="about the exact engine, on its own server")

EAST, NORTH = vector(1), vector(0, 1)


@pytest.fixture
async def database(mongo_uri: str, database_name: str) -> AsyncGenerator[AsyncDatabase[Row]]:
    """A database of this test's own."""
    async with open_client(Target(mongo_uri, database_name, embedded=True)) as client:
        yield client[database_name]


@pytest.fixture
def chunks(database: AsyncDatabase[Row]) -> AsyncCollection[Row]:
    """Its chunk collection."""
    return database[PIN.collection]


@pytest.fixture
async def followed(chunks: AsyncCollection[Row]) -> AsyncGenerator[Followed]:
    """A table that follows it."""
    made = Followed(chunks, PIN)
    yield made
    await made.close()


def near(table: VectorTable, query: Vector = EAST) -> list[str]:
    """The ids that are near, best first."""
    return [chunk_id for chunk_id, score in table.nearest(query, 1000, Filter()) if score > 0.9]


def ours() -> set[str]:
    """The running tasks that follow a collection."""
    coroutines = [cast("Coroutine[Any, Any, Any]", task.get_coro()) for task in asyncio.all_tasks()]
    return {
        coroutine.__qualname__ for coroutine in coroutines if coroutine.__qualname__.startswith(("Followed", "_Reader"))
    }


async def test_what_is_published_shows(chunks: AsyncCollection[Row]) -> None:
    """New chunks, edited vectors, changed filters and deletions, through the engine, without another load."""
    await chunks.insert_one(chunk("t/o:1/full", EAST, "bmx"))
    engine = ExactSearch(chunks, PIN, follow=True)

    async def shows(*ids: str, where: Filter = Filter(), query: Vector = EAST) -> None:  # noqa: B008 - frozen
        async def found() -> list[str]:
            return [hit.id for hit in await engine.search(query, 9, where) if hit.score > 0.9]

        await becomes(found, list(ids))

    await shows("t/o:1/full")
    await chunks.insert_many([chunk("t/o:2/full", EAST, "bmx"), chunk("t/o:3/full", NORTH)])
    await shows("t/o:1/full", "t/o:2/full")
    await chunks.update_one({"_id": "t/o:2/full"}, {"$set": {"embedding": chunk("x/y", NORTH)["embedding"]}})
    await shows("t/o:1/full")
    await shows("t/o:2/full", "t/o:3/full", query=NORTH)
    await chunks.update_one({"_id": "t/o:1/full"}, {"$set": {"sport": "surfing"}})
    await shows("t/o:1/full", where=Filter("surfing"))
    assert await engine.holds("t/o:1/full", EAST, Filter("surfing"))
    await chunks.delete_one({"_id": "t/o:1/full"})
    await shows()
    await chunks.replace_one({"_id": "t/o:3/full"}, chunk("t/o:3/full", EAST[:2]))
    await shows("t/o:2/full", query=NORTH)
    tables: Any = engine._tables  # pyright: ignore[reportPrivateUsage]
    assert tables.loads == 1
    await engine.close()


async def test_a_publication_shows_whole_or_not_at_all(chunks: AsyncCollection[Row], followed: Followed) -> None:
    """A document's chunks are exchanged for others, many times: each look sees one set of them."""
    sets = [[chunk(f"t/o:1/{name}-{n}", EAST) for n in range(size)] for name, size in (("a", 4), ("b", 7), ("c", 2))]
    await chunks.create_index("docKey")
    await chunks.insert_many(sets[0])
    allowed = [sorted(row["_id"] for row in rows) for rows in sets]
    table = await followed.current()
    done = asyncio.Event()
    seen: set[str] = set()

    async def watch() -> None:
        while not done.is_set():
            now = near(table)
            assert now in allowed
            seen.add(now[0])
            await asyncio.sleep(0)

    async def publish(rows: Sequence[Row]) -> None:
        client = chunks.database.client
        async with client.start_session() as session, await session.start_transaction():
            await chunks.delete_many({"docKey": "t/o:1"}, session=session)
            await chunks.insert_many(list(rows), session=session)

    watching = asyncio.create_task(watch())
    for number in range(1, 13):
        await publish(sets[number % 3])
        await until(lambda now=number: near(table) == allowed[now % 3], f"publication {number}")
    done.set()
    await watching
    assert seen == {"t/o:1/a-0", "t/o:1/b-0", "t/o:1/c-0"}


async def test_rows_that_belong_to_no_document(chunks: AsyncCollection[Row], followed: Followed) -> None:
    """Written by hand, without `docKey` or with an id of another type: each is followed for itself."""
    bare = chunk("bare", EAST)
    del bare["docKey"]
    await chunks.insert_many([bare, {**bare, "_id": 7}])
    table = await followed.current()
    assert near(table) == ["7", "bare"]
    await chunks.insert_one({**bare, "_id": "late"})
    await until(lambda: near(table) == ["7", "bare", "late"], "the third")
    await chunks.delete_many({"_id": {"$in": [7, "late"]}})
    await until(lambda: near(table) == ["bare"], "the deletions")
    await chunks.update_one({"_id": "bare"}, {"$set": {"docKey": "t/o:1", "model": "another/model"}})
    await until(lambda: (near(table), table.skipped) == ([], 1), "another model")
    await chunks.delete_one({"_id": "bare"})
    await until(lambda: table.skipped == 0, "the last deletion")


async def test_a_collection_that_goes_and_comes(database: AsyncDatabase[Row], followed: Followed) -> None:
    """Not there yet, dropped, renamed away, renamed into, the whole database dropped: a new load each time."""
    chunks = database[PIN.collection]
    assert await held(followed) == []

    async def shows(*ids: str) -> None:
        await becomes(partial(held, followed), list(ids))

    await chunks.insert_one(chunk("t/o:1/full", EAST))
    await shows("t/o:1/full")
    assert followed.loads == 1
    await chunks.drop()
    await shows()
    await database["other"].insert_one(chunk("t/o:2/full", EAST))
    await database["other"].rename(PIN.collection)
    await shows("t/o:2/full")
    await chunks.rename("elsewhere")
    await shows()
    await chunks.insert_one(chunk("t/o:3/full", EAST))
    await shows("t/o:3/full")
    await database.client.drop_database(database.name)
    await shows()
    await chunks.insert_one(chunk("t/o:4/full", EAST))
    await shows("t/o:4/full")
    assert followed.loads >= 5


@pytest.mark.parametrize("seed", range(3))
async def test_writes_beside_the_load_are_not_missed(
    chunks: AsyncCollection[Row], followed: Followed, seed: int
) -> None:
    """Any writes before, during and after the load: in the end the table holds what the collection holds."""
    rng = random.Random(seed)  # noqa: S311 - a test's choices, printed with its name
    await chunks.create_index("docKey")
    await chunks.insert_many([chunk(f"t/o:{n}/full", EAST) for n in range(500)])

    async def write() -> None:
        for _ in range(250):
            key = f"t/o:{rng.randrange(600)}"
            match rng.randrange(4):
                case 0:
                    await chunks.delete_many({"docKey": key})
                case 1:
                    await chunks.update_many({"docKey": key}, {"$set": {"sport": rng.choice(["bmx", None])}})
                case _:
                    row = chunk(f"{key}/{rng.choice(['full', 'full-2'])}", vector(*rng.choices([-1, 1, 2], k=4)))
                    await chunks.replace_one({"_id": row["_id"]}, row, upsert=True)

    writing = asyncio.create_task(write())
    table = await followed.current()
    await writing
    rows = {row["_id"]: row async for row in chunks.find({})}

    def equal() -> bool:
        return set(content(table)) == rows.keys() and all(
            table.holds(id_, _unit(row), Filter(row["sport"], row["docType"])) for id_, row in rows.items()
        )

    await until(equal, "the same content")
    assert followed.loads == 1


def _unit(row: Row) -> Vector:
    found = stored(row["embedding"], PIN.dimensions)
    assert found is not None
    return found


async def test_a_burst_is_taken_up_in_handfuls(chunks: AsyncCollection[Row], followed: Followed) -> None:
    """More events than are held at once."""
    await chunks.create_index("docKey")
    table = await followed.current()
    for start in range(0, 3000, 500):
        await chunks.insert_many([chunk(f"t/o:{n}/full", EAST) for n in range(start, start + 500)])
    await until(lambda: len(table) == 3000, "three thousand chunks")
    await chunks.delete_many({})
    await until(lambda: len(table) == 0, "none")
    assert len(table._matrix) < 3000  # pyright: ignore[reportPrivateUsage] - the room is given back


async def test_closing(chunks: AsyncCollection[Row]) -> None:
    """At any moment, more than once, and nothing runs on; who asks afterwards is told."""
    never, early, later = (ExactSearch(chunks, PIN, follow=True) for _ in range(3))
    await never.close()
    first = asyncio.create_task(early.search(EAST, 5, Filter()))
    await asyncio.sleep(0)
    await early.close()
    with pytest.raises(Unavailable, match="closed"):
        await first
    assert await later.search(EAST, 5, Filter()) == []
    await later.close()
    await later.close()
    for engine in (never, early, later):
        with pytest.raises(Unavailable, match="closed"):
            await engine.search(EAST, 5, Filter())
    assert ours() == set()


async def test_a_switched_pin_ends_the_former_reader(database: AsyncDatabase[Row]) -> None:
    """The next query is answered from the other generation; its reader follows, the former's does not."""
    other = Pin(PIN.model, PIN.dimensions, "knowledge_chunks_other", "knowledge_vec_other")
    embedder = FixedEmbedder({"east": EAST})
    await database[PIN.collection].insert_one(chunk("t/o:1/old", EAST))
    await database[other.collection].insert_one(chunk("t/o:1/new", EAST))
    await ensure_pin(database, embedder.model)
    search = KnowledgeSearch(database, embedder, follow=True)
    assert [hit.id for hit in (await search.search("east")).hits] == ["t/o:1/old"]
    await database[PINS].update_one({"_id": ACTIVE}, {"$set": other.as_row()})
    assert [hit.id for hit in (await search.search("east")).hits] == ["t/o:1/new"]
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert f"following {other.collection}" in names
    assert f"following {PIN.collection}" not in names
    await search.close()
    await search.close()
    assert ours() == set()


@pytest.mark.slow
async def test_a_server_that_is_killed_and_comes_back(tmp_path: Path) -> None:
    """Searches fail as out of reach meanwhile; afterwards what was written shows, and what is written then."""
    port = free_port()
    uri = f"mongodb://127.0.0.1:{port}/?replicaSet=secantus&retryWrites=false&heartbeatFrequencyMS=500"
    async with open_client(Target(uri, "x", embedded=True)) as client:
        chunks = client["x"][PIN.collection]
        followed = Followed(chunks, PIN)
        for life in range(3):
            with secantus(tmp_path, "--sync-on-commit", "--noop-heartbeat-seconds", "1", port=port) as server:
                async with open_client(Target(uri, "x", embedded=True)) as writer:  # knows no connection that is gone
                    await writer["x"][PIN.collection].insert_one(chunk(f"t/o:{life}/full", EAST))
                wanted = [f"t/o:{n}/full" for n in range(life + 1)]
                await becomes(partial(held, followed), wanted)
                server.child.kill()
                server.child.wait()
        await followed.close()
