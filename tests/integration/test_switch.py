"""A reader amid a switch of the embedding model: never blank, never mixed, each question by the pin's own model."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row, Target, open_client
from brain.knowledge.embedding import Embedded, EmbeddingClient, Purpose
from brain.knowledge.embedding.pinned import PinnedClients
from brain.knowledge.errors import PinMismatch, Unavailable
from brain.knowledge.pin import ACTIVE, PINS, Model, Pin
from brain.knowledge.search.service import KnowledgeSearch
from brain.knowledge.search.vectors import binary
from brain.knowledge.settings import KnowledgeSettings, load

OLD: Final = Pin("test/old", 4)
NEW: Final = Pin("test/new", 4, "knowledge_chunks_new", "knowledge_vec_new")  # as wide, so that only names differ
Amid = Callable[[], Awaitable[None]]


class Client:
    """Implements EmbeddingClient; something may happen while it embeds."""

    def __init__(self, pin: Pin, amid: Amid | None = None) -> None:
        self.model = Model(pin.model, pin.dimensions, 512)
        self.amid = amid
        self.closed = False

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """One vector for each model."""
        if self.amid is not None:
            await self.amid()
        vector = [1.0, 0.0, 0.0, 0.0] if self.model.name == OLD.model else [0.0, 1.0, 0.0, 0.0]
        return Embedded(tuple(np.array(vector, dtype=np.float32) for _ in texts))

    async def close(self) -> None:
        """Note it."""
        self.closed = True


@pytest.fixture
async def database(mongo_uri: str, database_name: str) -> AsyncGenerator[AsyncDatabase[Row]]:
    """Both generations, the old one active."""
    client = open_client(Target(mongo_uri, database_name))
    found = client[database_name]
    for pin in (OLD, NEW):
        vector = (await Client(pin).embed(["x"])).vectors[0]
        row: dict[str, Any] = {"model": pin.model, "dimensions": 4, "embedding": binary(vector), "docType": "trick"}
        await found[pin.collection].insert_many([{**row, "_id": f"tricks/n:{n}/p"} for n in range(3)])
    await found[PINS].insert_one({"_id": ACTIVE, **OLD.as_row()})
    yield found
    await client.close()


def clients(*made: Client) -> PinnedClients:
    """These clients, by their models."""
    by_name: dict[str, EmbeddingClient] = {client.model.name: client for client in made}
    return PinnedClients(load(KnowledgeSettings, {}, "KNOWLEDGE_"), lambda _settings, pin: by_name[pin.model])


async def switch(database: AsyncDatabase[Row], to: Pin = NEW) -> None:
    """One write, as `pin switch` does it."""
    await database[PINS].update_one({"_id": ACTIVE}, {"$set": to.as_row()})


async def test_the_next_question_is_the_new_model_s(database: AsyncDatabase[Row]) -> None:
    """There and back; each client is closed with the others."""
    old, new = Client(OLD), Client(NEW)
    both = clients(old, new)
    search = KnowledgeSearch(database, both, follow=True)
    for pin in (OLD, NEW, OLD):
        await switch(database, pin)
        found = await search.search("how")
        assert (found.pin, len(found.hits), {hit.fields["model"] for hit in found.hits}) == (pin, 3, {pin.model})
        assert {hit.score for hit in found.hits} == {1.0}, "the question has the vector of the chunks' model"
    await search.close()
    await both.close()
    assert (old.closed, new.closed) == (True, True)


async def test_a_switch_and_a_drop_amid_a_question(database: AsyncDatabase[Row]) -> None:
    """The old chunks are gone when the engine looks for them: the question is asked anew, not answered with nothing."""

    async def amid() -> None:
        await switch(database)
        await database[OLD.collection].drop()

    search = KnowledgeSearch(database, clients(Client(OLD, amid), Client(NEW)))
    found = await search.search("how")
    assert (found.pin, len(found.hits)) == (NEW, 3)


class Overtaken(KnowledgeSearch):
    """Something happens when it has read the pin and looks for a document's chunks."""

    amid: Amid | None = None

    async def _chunks(self, pin: Pin, doc_keys: Sequence[str]) -> list[dict[str, Any]]:
        if (amid := self.amid) is not None:
            self.amid = None
            await amid()
        return await super()._chunks(pin, doc_keys)


@pytest.mark.parametrize("closing", [False, True])
async def test_a_switch_amid_the_look_at_a_document(database: AsyncDatabase[Row], *, closing: bool) -> None:
    """Whether a document can be found is asked anew too: its old chunks or the old engine may be gone."""
    for pin in (OLD, NEW):
        await database[pin.collection].update_one({"_id": "tricks/n:1/p"}, {"$set": {"docKey": "tricks/n:1"}})
    search = Overtaken(database, clients(Client(OLD), Client(NEW)), follow=True)

    async def amid() -> None:
        await switch(database)
        if closing:
            await search.search("another question, under the new pin")
        else:
            await database[OLD.collection].drop()

    search.amid = amid
    assert await search.searchable(["tricks/n:1"]) is True
    await search.close()


async def test_a_provider_that_no_longer_has_the_old_model(database: AsyncDatabase[Row]) -> None:
    """An error of the old model after the switch is not told; one of the model that is searched is."""

    async def fails() -> None:
        await switch(database)
        message = "gone"
        raise Unavailable(message)

    assert (await KnowledgeSearch(database, clients(Client(OLD, fails), Client(NEW))).search("how")).pin == NEW
    search = KnowledgeSearch(database, clients(Client(OLD), Client(NEW, fails)))
    with pytest.raises(Unavailable, match="gone"):
        await search.search("how")


async def test_switches_without_end_do_not_hold_a_question(database: AsyncDatabase[Row]) -> None:
    """It is asked anew a bounded number of times."""
    empty = replace(NEW, collection="knowledge_chunks_empty")

    async def amid() -> None:
        await switch(
            database, OLD if (await database[PINS].find_one({})) == {"_id": ACTIVE, **empty.as_row()} else empty
        )
        await database[OLD.collection].drop()

    search = KnowledgeSearch(database, clients(Client(OLD, amid), Client(NEW, amid)))
    assert (await asyncio.wait_for(search.search("how"), 30)).hits == ()


async def test_a_client_of_another_model_is_refused(database: AsyncDatabase[Row]) -> None:
    """As wide as the pin, and yet not its model: nothing is compared."""
    search = KnowledgeSearch(database, Client(NEW))
    with pytest.raises(PinMismatch, match="test/old"):
        await search.search("how")
    await switch(database)
    assert (await search.search("how")).pin == NEW
