"""The way of a query: pin, engine, embedding, search. The command line and the companions' tools use this same code."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pymongo
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import PyMongoError

from brain.knowledge.chunk import DOC_TYPES
from brain.knowledge.connect import Row
from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.pinned import Clients, OneClient, PinnedClients
from brain.knowledge.errors import IndexNotReady, KnowledgeError
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.pin import Pin
from brain.knowledge.pins import active_pin
from brain.knowledge.search import Engine, Filter, Hit, SearchEngine
from brain.knowledge.search import vectors as arithmetic
from brain.knowledge.search.choose import Mode, search_engine
from brain.knowledge.sports import canonical_sport

T = TypeVar("T")

DEFAULT_LIMIT: Final = 5
MOST_HITS: Final = 50
MOST_CHECKED: Final = 20
"""Chunks of one document that are searched to see whether it can be found."""

MOST_SWITCHES: Final = 2
"""Times that one query begins anew because the pin changed meanwhile; nobody switches more often within one."""

_READ_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a query: the hits, best first, under which pin and by which engine."""

    hits: tuple[Hit, ...]
    pin: Pin
    engine: Engine


class KnowledgeSearch:
    """Search in the chunks of the active pin. Keeps the engine (and what it has loaded) until the pin changes.

    `follow` is for who lives long (the bridge, MCP, chat): the exact engine then shows a publication within a second.
    Without it a search answers from the vectors as of the first one, which is right for a command that ends.

    `client` embeds the queries; with `PinnedClients` in its place each is embedded as the pin says, so that a switch to
    another model is followed by the next query.
    """

    def __init__(
        self,
        database: AsyncDatabase[Row],
        client: EmbeddingClient | PinnedClients,
        mode: Mode = "auto",
        *,
        follow: bool = False,
    ) -> None:
        self._database = database
        self._clients: Clients = client if isinstance(client, PinnedClients) else OneClient(client)
        self._mode: Mode = mode
        self._follow = follow
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

        No hits mean that nothing is there to be found. Raises ValueError for a limit outside 1 to 50 or an unknown
        document type, PinMismatch when the client embeds with another model than the chunks, and what the client and
        the engine raise: IndexMissing; IndexNotReady, also when nothing was ever indexed; IndexUnusable; Unreachable,
        Unavailable or Refused when search itself cannot be reached.
        """
        if not 1 <= limit <= MOST_HITS:
            message = f"the limit must be between 1 and {MOST_HITS}"
            raise ValueError(message)
        if doc_type is not None and doc_type not in DOC_TYPES:
            message = f"the document type must be one of {', '.join(DOC_TYPES)}"
            raise ValueError(message)
        where = Filter(canonical_sport(sport), doc_type)
        return await self._under_pin(lambda pin: self._search_under(pin, query, limit, where), lambda f: bool(f.hits))

    async def _under_pin(self, ask: Callable[[Pin], Awaitable[T]], told: Callable[[T], bool]) -> T:
        """Ask under the active pin; anew when nothing is `told`, or it fails, and the pin was switched meanwhile."""
        pin = await self._pin()
        for _ in range(MOST_SWITCHES):
            try:
                answer = await ask(pin)
            except KnowledgeError:
                if (now := await self._pin()) == pin:
                    raise
            else:
                if told(answer) or (now := await self._pin()) == pin:
                    return answer
            pin = now  # the old chunks may be gone already
        return await ask(pin)

    async def _search_under(self, pin: Pin, query: str, limit: int, where: Filter) -> Found:
        client = self._clients.of(pin)
        engine = await self._engine_for(pin)
        vector = (await client.embed([query], "query")).vectors[0]
        hits: Sequence[Hit] = await engine.search(vector, limit, where)
        return Found(tuple(hits), pin, engine.name)

    async def searchable(self, doc_keys: Sequence[str]) -> bool | None:
        """Whether searches find the stored chunks of a document, each by its own vector; None when it has no chunk.

        `doc_keys` are the forms that the document's key may have. Of many chunks the newest MOST_CHECKED count. Raises
        what `search` raises; no text is embedded.
        """
        return await self._under_pin(lambda pin: self._searchable_under(pin, doc_keys), bool)

    async def _searchable_under(self, pin: Pin, doc_keys: Sequence[str]) -> bool | None:
        engine = await self._engine_for(pin)
        rows = await self._chunks(pin, doc_keys)
        for row in rows:
            vector = arithmetic.stored(row.get("embedding"), pin.dimensions)
            where = Filter(row.get("sport"), row.get("docType"))
            if vector is None or not await engine.holds(str(row["_id"]), vector, where):
                return False
        return True if rows else None

    async def close(self) -> None:
        """Give back what the engine holds; the database and the embedding client stay with their owners."""
        async with self._choosing:
            if self._engine is not None:
                await self._engine[1].close()
                self._engine = None

    async def _chunks(self, pin: Pin, doc_keys: Sequence[str]) -> list[dict[str, Any]]:
        query, fields = {"docKey": {"$in": list(doc_keys)}}, {"embedding": 1, "sport": 1, "docType": 1}
        try:
            with pymongo.timeout(_READ_SECONDS):
                found = self._database[pin.collection].find(query, fields)
                return await found.sort("sourceVersion", -1).limit(MOST_CHECKED).to_list()
        except PyMongoError as exc:
            raise as_knowledge_error(exc, f"reading the chunks of a document in {pin.collection}") from exc

    async def _pin(self) -> Pin:
        pin = await active_pin(self._database)
        if pin is None:
            message = (
                f"nothing is indexed in the database {self._database.name} yet: run the worker (`python -m worker run`)"
            )
            raise IndexNotReady(message)
        return pin

    async def _engine_for(self, pin: Pin) -> SearchEngine:
        async with self._choosing:
            if self._engine is None or self._engine[0] != pin:
                former = self._engine
                self._engine = (pin, await search_engine(self._database, pin, self._mode, follow=self._follow))
                if former is not None:
                    await former[1].close()
            return self._engine[1]
