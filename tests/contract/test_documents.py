"""The contract of `worker.ports.Documents`, over both drivers."""

import uuid
from typing import Any

import pytest
from bson import Binary, Decimal128, ObjectId, Timestamp
from pymongo.asynchronous.database import AsyncDatabase

from worker.model import DocKey
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.documents import MongoDocuments
from worker.mongo.driver import Database

Backend = AsyncDatabase[dict[str, Any]]

MIXED: list[object] = [
    -3,
    7,
    7.5,
    Decimal128("8"),
    2**40,
    "",
    "7",
    "kickflip",
    {"site": "docs", "n": 1},
    {"site": "docs", "n": 2},
    uuid.UUID(int=5),
    ObjectId("65f000000000000000000001"),
    ObjectId("65f000000000000000000002"),
    False,
    True,
]
"""Ids in the order that MongoDB gives them: numbers, strings, objects, binaries, object ids, booleans."""


def keys(*ids: object) -> list[DocKey]:
    """The keys of trick documents."""
    return [DocKey.of("trickipedia", one) for one in ids]


async def test_a_read_gives_what_is_there_and_when(database: Database, backend: Backend) -> None:
    """Missing ids are missing from the reading; its time moves on with every write."""
    documents = MongoDocuments(database)
    await backend["trickipedia"].insert_one({"_id": 1, "name": "Ollie"})
    first = await documents.read("trickipedia", keys(1, 2))
    assert {key.raw: doc["name"] for key, doc in first.documents.items()} == {1: "Ollie"}
    await backend["trickipedia"].update_one({"_id": 1}, {"$set": {"name": "Nollie"}})
    second = await documents.read("trickipedia", keys(1), after=first.at)
    assert second.documents[DocKey.of("trickipedia", 1)]["name"] == "Nollie"
    assert second.at > first.at


async def test_binaries_that_call_themselves_uuids_are_read(database: Database, backend: Backend) -> None:
    """Of any length, as anybody can store them, as a field and as an id: nothing of the answer is lost."""
    documents, odd = MongoDocuments(database), Binary(b"xyz", 4)
    await backend["trickipedia"].insert_many([{"_id": 1, "name": "Ollie"}, {"_id": 2, "x": odd}, {"_id": odd}])
    reading = await documents.read("trickipedia", keys(1, 2, odd))
    assert {key.raw for key in reading.documents} == {1, 2, odd}
    assert reading.unreadable == {}
    assert set(await documents.page("trickipedia", None, 10)) == set(keys(1, 2, odd))
    assert await documents.absent("trickipedia", keys(1, odd, 3)) == keys(3)


async def test_a_read_is_never_older_than_its_event(database: Database, backend: Backend) -> None:
    """`after` moves the session forward; the reading says a time at least as late, also when nothing is asked."""
    documents = MongoDocuments(database)
    await backend["trickipedia"].insert_one({"_id": 1})
    after = await MongoChangeStream(database, ["trickipedia"]).now()
    assert (await documents.read("trickipedia", keys(1), after)).at >= after
    assert (await documents.read("trickipedia", [], after)).at >= after


async def test_ids_of_every_type_are_found_by_themselves(database: Database, backend: Backend) -> None:
    """An object id and its hex string are two documents, and each is read under its own key."""
    hexed = "65f000000000000000000001"
    await backend["trickipedia"].insert_many([{"_id": one, "n": n} for n, one in enumerate([*MIXED, hexed])])
    reading = await MongoDocuments(database).read("trickipedia", keys(*MIXED, hexed))
    assert [reading.documents[key]["n"] for key in keys(*MIXED, hexed)] == list(range(len(MIXED) + 1))


@pytest.mark.parametrize("limit", [1, 2, 4, 100])
async def test_pages_pass_over_no_type_of_id(database: Database, backend: Backend, limit: int) -> None:
    """Page after page gives every document once, in the order of `_id`, whatever the types."""
    await backend["trickipedia"].insert_many([{"_id": one} for one in reversed(MIXED)])
    documents = MongoDocuments(database)
    found: list[DocKey] = []
    while page := await documents.page("trickipedia", found[-1] if found else None, limit):
        assert len(page) <= limit
        found += page
        assert len(found) <= len(MIXED)
    assert found == keys(*MIXED)


async def test_a_page_goes_on_after_an_id_that_is_gone(database: Database, backend: Backend) -> None:
    """A scan that is resumed need not find the document where it stopped."""
    await backend["trickipedia"].insert_many([{"_id": 1}, {"_id": 3}, {"_id": "a"}])
    assert await MongoDocuments(database).page("trickipedia", DocKey.of("trickipedia", 2), 10) == keys(3, "a")


async def test_a_collection_that_does_not_exist_is_empty(database: Database) -> None:
    """No error, no documents, and a time."""
    documents = MongoDocuments(database)
    assert await documents.page("nothing", None, 10) == []
    reading = await documents.read("nothing", [DocKey.of("nothing", 1)])
    assert reading.documents == {}
    assert reading.at > Timestamp(0, 0)
    assert await documents.estimate("nothing") == 0


async def test_many_big_documents_come_in_bounded_replies(database: Database, backend: Backend) -> None:
    """250 documents of 100 kB are read at once."""
    await backend["trickipedia"].insert_many([{"_id": n, "text": "x" * 100_000} for n in range(250)])
    documents = MongoDocuments(database)
    assert len((await documents.read("trickipedia", keys(*range(250)))).documents) == 250
    assert await documents.absent("trickipedia", keys(3, 900, "3")) == keys(900, "3")
    assert await documents.estimate("trickipedia") == 250
