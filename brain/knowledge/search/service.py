"""The way of a query: pin, engine, embedding, search. The command line and the companions' tools use this same code."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.chunk import DOC_TYPES
from brain.knowledge.connect import Row
from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.errors import PinMismatch, Unavailable
from brain.knowledge.pin import Pin
from brain.knowledge.pins import active_pin
from brain.knowledge.search import Engine, Filter, Hit, SearchEngine
from brain.knowledge.search.choose import Mode, search_engine
from brain.knowledge.sports import canonical_sport

DEFAULT_LIMIT: Final = 5
MOST_HITS: Final = 50


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a query: the hits, best first, under which pin and by which engine."""

    hits: tuple[Hit, ...]
    pin: Pin
    engine: Engine


class KnowledgeSearch:
    """Search in the chunks of the active pin. Keeps the engine (and what it has loaded) until the pin changes."""

    def __init__(self, database: AsyncDatabase[Row], client: EmbeddingClient, mode: Mode = "auto") -> None:
        self._database = database
        self._client = client
        self._mode: Mode = mode
        self._engine: tuple[Pin, SearchEngine] | None = None
        self._choosing = asyncio.Lock()

    async def search(
        self,
        query: str,
        sport: str | None = None,
        doc_type: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Found:
        """The `limit` chunks nearest to the query; any spelling of a sport will do.

        Raises ValueError for a limit outside 1 to 50 or an unknown document type, Unavailable when nothing was ever
        indexed, PinMismatch when the client embeds with another model than the chunks, and what the client and the
        engine raise.
        """
        if not 1 <= limit <= MOST_HITS:
            message = f"the limit must be between 1 and {MOST_HITS}"
            raise ValueError(message)
        if doc_type is not None and doc_type not in DOC_TYPES:
            message = f"the document type must be one of {', '.join(DOC_TYPES)}"
            raise ValueError(message)
        pin = await self._checked_pin()
        engine = await self._engine_for(pin)
        vector = (await self._client.embed([query], "query")).vectors[0]
        hits: Sequence[Hit] = await engine.search(vector, limit, Filter(canonical_sport(sport), doc_type))
        return Found(tuple(hits), pin, engine.name)

    async def _checked_pin(self) -> Pin:
        pin = await active_pin(self._database)
        if pin is None:
            message = (
                f"nothing is indexed in the database {self._database.name} yet: run the worker (`python -m worker run`)"
            )
            raise Unavailable(message)
        model = self._client.model
        if (model.name, model.dimensions) != (pin.model, pin.dimensions):
            message = (
                f"the chunks are embedded with {pin.model} ({pin.dimensions}) and this program with {model.name}"
                f" ({model.dimensions}): set EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS to the pin's"
            )
            raise PinMismatch(message)
        return pin

    async def _engine_for(self, pin: Pin) -> SearchEngine:
        async with self._choosing:
            if self._engine is None or self._engine[0] != pin:
                self._engine = (pin, await search_engine(self._database, pin, self._mode))
            return self._engine[1]
