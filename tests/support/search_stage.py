"""Both search engines over the same chunks: Atlas' on the strict fake, the exact one on the embedded server."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import numpy as np

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Target, open_client
from brain.knowledge.embedding import Embedded, Purpose, Usage
from brain.knowledge.pin import Model, Pin
from brain.knowledge.search import Filter, SearchEngine
from brain.knowledge.search.atlas import AtlasSearch
from brain.knowledge.search.exact import ExactSearch
from brain.knowledge.search.follow import Followed
from brain.knowledge.search.index import definition
from brain.knowledge.search.table import VectorTable
from brain.knowledge.search.vectors import binary
from tests.support.fake_mongod import FakeMongod
from tests.support.fake_mongod.server import DATABASE
from tests.support.following import PATIENCE

Kind = Literal["atlas", "exact", "exact, following"]
Row = dict[str, Any]

PIN: Final = Pin("test/model", 4)
KINDS: Final[Sequence[Kind]] = ("atlas", "exact", "exact, following")


def vector(*numbers: float) -> Vector:
    """A vector of the pin's width; what is not named is zero."""
    return np.array([*numbers, *[0.0] * (PIN.dimensions - len(numbers))], np.float32)


def chunk(id_: str, embedding: object, sport: str | None = None, doc_type: str = "trick", **fields: object) -> Row:
    """A row of the chunk collection, as far as search reads it; the id is `<docKey>/<part>`."""
    stored = binary(cast("Vector", embedding)) if isinstance(embedding, np.ndarray) else embedding
    return {
        "_id": id_,
        "docKey": id_.rpartition("/")[0],
        "sport": sport,
        "docType": doc_type,
        "model": PIN.model,
        "text": f"the text of {id_}",
        "embedding": stored,
        **fields,
    }


@dataclass(frozen=True, slots=True)
class Stage:
    """An engine, and how rows come into what it searches."""

    engine: SearchEngine
    fill: Callable[[Sequence[Row]], Awaitable[None]]


@asynccontextmanager
async def on_the_fake(server: FakeMongod) -> AsyncGenerator[Stage]:
    """Atlas' engine before the fake, through the driver and with the options of every client of ours."""
    server.search.enabled = True
    server.search.put(PIN.collection, PIN.index, definition(PIN))

    async def fill(rows: Sequence[Row]) -> None:
        for row in rows:
            server.write(PIN.collection, row)

    async with open_client(Target(server.uri, DATABASE)) as client:
        yield Stage(AtlasSearch(client[DATABASE][PIN.collection], PIN), fill)


@asynccontextmanager
async def on_the_embedded(uri: str, name: str, *, follow: bool) -> AsyncGenerator[Stage]:
    """The exact engine before the embedded server."""
    async with open_client(Target(uri, name, embedded=True)) as client:
        collection = client[name][PIN.collection]
        engine = ExactSearch(collection, PIN, follow=follow)

        async def fill(rows: Sequence[Row]) -> None:
            await collection.insert_many(list(rows))

        yield Stage(engine, fill)
        await engine.close()
        await client.drop_database(name)


class FixedEmbedder:
    """An embedding client that knows a few texts."""

    def __init__(self, known: Mapping[str, Vector], model: Model | None = None) -> None:
        self._known = known
        self._model = model or Model(PIN.model, PIN.dimensions, 100)

    @property
    def model(self) -> Model:
        """The model that it says it is."""
        return self._model

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """The vectors of these texts."""
        del purpose
        return Embedded(tuple(self._known[text] for text in texts), Usage(tokens=1))

    async def close(self) -> None:
        """Nothing to give back."""


def content(table: VectorTable) -> list[str]:
    """Every id that can be found, nearest to the first axis first."""
    return [chunk_id for chunk_id, _ in table.nearest(vector(1), 10_000, Filter())]


async def held(followed: Followed) -> list[str]:
    """Every id that can be found now."""
    return content(await followed.current())


async def becomes(asked: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Ask again and again until the answer is this."""
    async with asyncio.timeout(PATIENCE):
        while await asked() != wanted:  # noqa: ASYNC110 - what is asked has no event
            await asyncio.sleep(0.005)
