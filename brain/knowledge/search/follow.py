"""The chunk collection as a table in memory: loaded once, or loaded and then kept equal by a change stream.

    open the stream ─▶ load ─▶ event: which chunk ─▶ read its document's chunks ─▶ replace them in the table
          ▲                                                                                   │
          └────────── the stream broke, its history is gone, the collection was dropped ◀─────┘

The position is taken before the load, so nothing falls between. A document's chunks are replaced together, so no search
sees half of a publication. Whatever breaks is answered by a new stream and a new load beside the old table, which
serves until the new one is whole.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import pymongo
from pymongo.asynchronous.change_stream import AsyncChangeStream
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from brain.knowledge.connect import Row
from brain.knowledge.errors import Fatal, KnowledgeError, Unavailable
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.pin import Pin
from brain.knowledge.search.table import NEEDED, VectorTable

Pause = Callable[[float], Awaitable[None]]

MOST_PENDING: Final = 1000
"""Changed chunks that are taken up together; the rest waits at the server."""

_BATCH: Final = 1000
_LOAD_SECONDS: Final = 300.0  # 10,000 chunks take one to three seconds; a table that is full, minutes
_READ_SECONDS: Final = 30.0
_IDLE_MS: Final = 1000  # how long the server holds a question without an answer
_LINGER: Final = 0.02  # seconds in which further events join the first: those of one transaction come together
_OWNERS: Final = 50  # documents whose chunks are read together
_CANCEL_SECONDS: Final = 0.2
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_CHANGES: Final = frozenset({"insert", "update", "replace", "delete"})


class Tables(Protocol):
    """Where an exact search gets its table from."""

    async def current(self) -> VectorTable:
        """The table as it is now; loads it when there is none. Raises KnowledgeError when it cannot be had."""
        ...

    async def close(self) -> None:
        """Give back what is held."""
        ...


async def load(collection: AsyncCollection[Row], pin: Pin) -> VectorTable:
    """Every chunk of the collection, a batch of rows in memory beside the table. Raises the driver's error.

    A chunk that is written meanwhile may be there or not.
    """
    with pymongo.timeout(_LOAD_SECONDS):
        # Metadata has no majority to read; some servers refuse to try.
        about = await collection.with_options(read_concern=ReadConcern("local")).estimated_document_count()
        table = await asyncio.to_thread(VectorTable, pin, about)
        async with collection.find({}, NEEDED, batch_size=_BATCH) as cursor:
            while rows := await cursor.to_list(_BATCH):
                await asyncio.to_thread(table.replace, (), rows)
    return table


class LoadedOnce:
    """For who asks and ends: a table as of the first question."""

    def __init__(self, collection: AsyncCollection[Row], pin: Pin) -> None:
        self._collection = collection
        self._pin = pin
        self._table: VectorTable | None = None
        self._loading = asyncio.Lock()

    async def current(self) -> VectorTable:
        """The table, loaded at the first call."""
        async with self._loading:
            if self._table is None:
                try:
                    self._table = await load(self._collection, self._pin)
                except PyMongoError as exc:
                    raise as_knowledge_error(exc, f"loading the vectors of {self._collection.name}") from exc
            return self._table

    async def close(self) -> None:
        """Nothing is held."""


class Followed:
    """For who lives long: a table that shows a publication a moment after it is stored.

    Starts at the first `current`, ends with `close`. While the stream is broken the last table serves; when the
    database refuses to be watched, `current` raises that, for a reader who never sees a change must not pass unnoticed.
    """

    def __init__(self, collection: AsyncCollection[Row], pin: Pin, pause: Pause = asyncio.sleep) -> None:
        self._collection = collection
        self._pin = pin
        self._pause = pause
        self._table: VectorTable | None = None
        self._error: KnowledgeError | None = None
        self._tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.loads = 0

    async def current(self) -> VectorTable:
        """The table; waits for the first load, and raises what that met. Unavailable once it is closed."""
        if self._closed:
            message = f"the search in {self._collection.name} is closed"
            raise Unavailable(message)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"following {self._collection.name}")
        if self._table is None:
            waiting = asyncio.create_task(self._tried.wait())
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        if self._task.done() and not self._task.cancelled():
            self._task.result()  # a bug ended it
        if self._error is not None and (self._table is None or isinstance(self._error, Fatal)):
            raise self._error.with_traceback(None)
        if self._table is None:
            message = f"the search in {self._collection.name} was closed before it was loaded"
            raise Unavailable(message)
        return self._table

    async def close(self) -> None:
        """Stop following and wait until that has ended."""
        self._closed = True
        if self._task is not None:
            await _end(self._task)

    async def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._closed:  # a stream that fails to end puts its own error in the place of our cancellation
            before = self.loads
            try:
                await self._follow()
            except (PyMongoError, KnowledgeError) as exc:
                # What breaks a stream that was whole is no error yet: a new one is opened, and that may succeed.
                self._error = self._meaning(exc) if self.loads == before else None
            self._tried.set()
            if self._closed:
                return
            pause = _FIRST_PAUSE if self.loads > before else min(pause * 2, _LONGEST_PAUSE)
            await self._pause(pause)

    def _meaning(self, exc: PyMongoError | KnowledgeError) -> KnowledgeError:
        if isinstance(exc, KnowledgeError):
            return exc
        return as_knowledge_error(exc, f"following the chunks of {self._collection.name}")

    async def _follow(self) -> None:
        """From a new stream and a new load on; returns when the collection was dropped or renamed."""
        watched = self._collection.database.watch(self._concerns(), max_await_time_ms=_IDLE_MS, batch_size=_BATCH)
        async with await watched as stream, self._collection.database.client.start_session() as session:
            self._table = await load(self._collection, self._pin)
            self._error = None
            self.loads += 1
            self._tried.set()
            reader = _Reader(stream)
            try:
                while (events := await reader.some()) and all(e["operationType"] in _CHANGES for e in events):
                    await self._take_up(events, self._table, session)
            finally:
                await reader.close()

    def _concerns(self) -> list[Mapping[str, Any]]:
        """A stream over the database, since a rename into the collection shows only there; which chunk, not what."""
        name = self._collection.name
        whole = {"operationType": {"$in": ["dropDatabase", "invalidate"]}}
        fields = dict.fromkeys(("operationType", "documentKey", "clusterTime"), 1)
        return [{"$match": {"$or": [{"ns.coll": name}, {"to.coll": name}, whole]}}, {"$project": fields}]

    async def _take_up(self, events: Sequence[Row], table: VectorTable, session: AsyncClientSession) -> None:
        """Read the documents of the changed chunks, at least as new as the events, and replace each as a whole."""
        changed = {str(event["documentKey"]["_id"]): event["documentKey"]["_id"] for event in events}
        session.advance_operation_time(max(event["clusterTime"] for event in events))
        with pymongo.timeout(_READ_SECONDS):
            present = await self._read({"_id": {"$in": list(changed.values())}}, {"docKey": 1}, session)
            ownerless = {str(row["_id"]): row["_id"] for row in present if not isinstance(row.get("docKey"), str)}
            owners = {row["docKey"] for row in present if str(row["_id"]) not in ownerless}
            owners |= await asyncio.to_thread(table.owners, changed) - ownerless.keys()
            for some in _slices(sorted(owners)):
                rows = await self._read({"docKey": {"$in": some}}, NEEDED, session)
                await asyncio.to_thread(table.replace, some, rows)
            if ownerless:  # rows that somebody wrote by hand: each is a document of its own
                rows = await self._read({"_id": {"$in": list(ownerless.values())}}, NEEDED, session)
                await asyncio.to_thread(table.replace, list(ownerless), rows)

    async def _read(
        self, query: Mapping[str, Any], fields: Mapping[str, Any], session: AsyncClientSession
    ) -> list[Row]:
        return await self._collection.find(query, fields, session=session, batch_size=_BATCH).to_list()


class _Reader:
    """The events of a stream, in handfuls: one question to the server at a time."""

    def __init__(self, stream: AsyncChangeStream[Row]) -> None:
        self._stream = stream
        self._asked: asyncio.Task[Row | None] | None = None
        self._closed = False

    async def some(self) -> list[Row]:
        """The next event and those that come with it; none when the stream has ended. Raises the driver's error."""
        events: list[Row] = []
        loop = asyncio.get_running_loop()
        until = loop.time()
        while len(events) < MOST_PENDING:
            asked = self._asked or asyncio.create_task(self._next())
            self._asked = asked
            if events and not (await asyncio.wait({asked}, timeout=max(0.0, until - loop.time())))[0]:
                break
            event = await asyncio.shield(asked)
            self._asked = None
            if event is None:
                break
            until = until if events else loop.time() + _LINGER
            events.append(event)
        return events

    async def close(self) -> None:
        """Take back the question."""
        self._closed = True
        if self._asked is not None:
            await _end(self._asked)
            if not self._asked.cancelled():
                self._asked.exception()  # looked at; whatever it was, the stream ends here

    async def _next(self) -> Row | None:
        while not self._closed:
            event = await self._stream.try_next()
            if event is not None or not self._stream.alive:
                return event
        return None


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task until it has ended: the driver may take a cancellation for a broken connection, and ask again.

    It is not awaited, which would take its cancellation for the caller's.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=_CANCEL_SECONDS)


def _slices(owners: Sequence[str]) -> Sequence[Sequence[str]]:
    return [owners[start : start + _OWNERS] for start in range(0, len(owners), _OWNERS)]
