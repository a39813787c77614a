"""`fresh` beside a real worker: after a save, until that very version is stored and found."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row, Target, open_client
from brain.knowledge.fresh import Freshness, Since, UnknownSource, fresh
from brain.knowledge.pin import OPENAI_SMALL
from brain.knowledge.search.service import KnowledgeSearch
from tests.support.processes import Embedder, Finished, Worker, command, environment, worker
from tests.support.search_stage import FixedEmbedder

pytestmark = pytest.mark.slow

PATIENCE = 30.0
FOUND = Freshness(stored=True, searchable=True)
GONE = Freshness(stored=True, searchable=None)
UNKNOWN = Freshness(stored=False, searchable=False)


@pytest.fixture
def running(mongo_uri: str, database_name: str, fake: Embedder, tmp_path: Path) -> Iterator[Worker]:
    """A worker that follows the database."""
    settings = environment(
        ATLAS_URI=mongo_uri, ATLAS_DB=database_name, OPENROUTER_API_KEY="k", OPENROUTER_BASE_URL=fake.url
    )
    with worker(tmp_path, settings) as started:
        started.until_ready()
        yield started


@pytest.fixture
async def database(mongo_uri: str, database_name: str) -> AsyncGenerator[AsyncDatabase[Row]]:
    """The database as backend and brain see it."""
    async with open_client(Target(mongo_uri, database_name, embedded=True)) as client:
        yield client[database_name]


@pytest.fixture
async def search(database: AsyncDatabase[Row]) -> AsyncGenerator[KnowledgeSearch]:
    """A long-lived search."""
    made = KnowledgeSearch(database, FixedEmbedder({}, OPENAI_SMALL), follow=True)
    yield made
    await made.close()


class Backend:
    """Saves, and knows the operation time of each save."""

    def __init__(self, database: AsyncDatabase[Row]) -> None:
        self._database = database

    async def save(self, id_: object, **fields: object) -> Since:
        """Insert or change a trick; when that was."""
        async with self._database.client.start_session() as session:
            tricks = self._database["trickipedia"]
            await tricks.update_one({"_id": id_}, {"$set": fields}, upsert=True, session=session)
            return Since(session.operation_time)

    async def delete(self, id_: object) -> Since:
        """Delete a trick; when that was."""
        async with self._database.client.start_session() as session:
            await self._database["trickipedia"].delete_one({"_id": id_}, session=session)
            return Since(session.operation_time)


async def text_of(database: AsyncDatabase[Row], words: str) -> list[Any]:
    """The chunks that say these words."""
    return await database["knowledge_chunks"].find({"text": {"$regex": words}}).to_list()


async def test_read_your_own_write(running: Worker, search: KnowledgeSearch, database: AsyncDatabase[Row]) -> None:
    """Each save, edit, touch and deletion: when the wait ends, what is stored is of that save."""
    backend, id_ = Backend(database), ObjectId()

    async def waited(since: Since, told: object = id_) -> Freshness:
        return await fresh(search, database, "trickipedia", told, since, PATIENCE)

    saved = await backend.save(id_, name="Ollie", category="Skateboarding", description="Pop the tail.", url="ollie")
    assert await waited(saved) == FOUND
    assert await text_of(database, "Pop the tail")
    assert await waited(saved, str(id_)) == FOUND
    for number in range(5):
        saved = await backend.save(id_, description=f"Edit number {number}.")
        assert await waited(saved, str(id_)) == FOUND
        assert await text_of(database, f"Edit number {number}")
    touched = await backend.save(id_, viewCount=7)
    assert await waited(touched) == FOUND
    assert await waited(await backend.delete(id_)) == GONE
    assert not await text_of(database, "Edit number")
    never = await backend.delete(ObjectId())
    assert await waited(never, "65f000000000000000000001") == GONE


async def test_milliseconds(running: Worker, search: KnowledgeSearch, database: AsyncDatabase[Row]) -> None:
    """The clock of who saved, where it knows no operation time."""
    backend, id_ = Backend(database), "kickflip"
    await backend.save(id_, name="Kickflip", category="Skateboarding", description="Flick.", url="kickflip")
    written = await database["trickipedia"].aggregate([{"$project": {"now": {"$toLong": "$$NOW"}}}])
    since = Since.told((await written.to_list())[0]["now"])
    assert await fresh(search, database, "trickipedia", id_, since, PATIENCE) == FOUND
    assert await text_of(database, "Flick")


async def test_what_cannot_be_stored(
    running: Worker, search: KnowledgeSearch, database: AsyncDatabase[Row], fake: Embedder
) -> None:
    """A document that is dead-lettered is not stored, although the worker has passed it; the wait has its end."""
    fake.script({"*": {"kind": "poison", "word": "unspeakable"}})
    try:
        fields = {"name": "Odd", "category": "Skateboarding", "description": "Simply unspeakable.", "url": "odd"}
        saved = await Backend(database).save("odd", **fields)
        assert await fresh(search, database, "trickipedia", "odd", saved, 4.0) == UNKNOWN
        assert await database["freshness_dead_letters"].find_one({"_id": "trickipedia/s:odd"}) is not None
    finally:
        fake.script({"*": {}})
    saved = await Backend(database).save("odd", description="Fit to be read.")
    assert await fresh(search, database, "trickipedia", "odd", saved, PATIENCE) == FOUND


async def test_a_source_that_nobody_follows(
    running: Worker, search: KnowledgeSearch, database: AsyncDatabase[Row]
) -> None:
    """Is said at once, with the name that was meant: no wait would make it fresh."""
    asked = asyncio.get_running_loop().time()
    with pytest.raises(UnknownSource, match="did you mean trickipedia") as told:
        await fresh(search, database, "trickipediaa", "ollie", Since(milliseconds=0), PATIENCE)
    assert "couch_videos" in str(told.value)
    assert asyncio.get_running_loop().time() - asked < PATIENCE / 2


async def test_from_the_command_line(
    running: Worker, database: AsyncDatabase[Row], mongo_uri: str, database_name: str
) -> None:
    """For a script that has just saved: 0 when it is fresh, 1 when the wait ended before, 64 when it never will be."""
    env = environment(ATLAS_URI=mongo_uri, ATLAS_DB=database_name)
    id_ = ObjectId()
    saved = await Backend(database).save(id_, name="Ollie", category="Skateboarding", description="Pop.", url="ollie")
    moment = saved.operation_time
    assert moment is not None

    async def told(*words: str) -> Finished:
        return await asyncio.to_thread(command, "fresh", *words, "--json", env=env, module="brain")

    now = await told("trickipedia", str(id_), "--wait", "30")
    assert (now.code, now.value) == (0, {"ok": True, "stored": True, "searchable": True}), now
    then = await told("trickipedia", str(id_), "--since", json.dumps({"t": moment.time, "i": moment.inc}))
    assert (then.code, then.value["ok"]) == (0, True), then
    later = await told("trickipedia", str(id_), "--since", "4000000000000", "--wait", "0")
    assert (later.code, later.value) == (1, {"ok": False, "stored": False, "searchable": False}), later
    for words in (("tricks", "x"), ("trickipedia", "x", "--since", "yesterday"), ("trickipedia", "x", "--wait", "61")):
        wrong = await told(*words)
        assert (wrong.code, wrong.value["error"]["type"]) == (64, "UsageError"), wrong


async def test_without_a_worker(search: KnowledgeSearch, database: AsyncDatabase[Row]) -> None:
    """Nothing was ever stored: no error, no, and no longer than was said."""
    saved = await Backend(database).save("x", name="X", category="Skateboarding", description="x", url="x")
    assert await fresh(search, database, "trickipedia", "x", saved, 0.2) == UNKNOWN
    assert await fresh(search, database, "trickipedia", "x", saved, 0) == UNKNOWN
    for wrong in (-1, 61, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 60"):
            await fresh(search, database, "trickipedia", "x", saved, wrong)
