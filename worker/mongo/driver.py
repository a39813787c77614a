"""The seam over the driver: one database through pymongo's asyncio API or through motor.

It holds what the adapters use and nothing more, and it is where the driver's errors become ours, so that no adapter
catches anything. The two drivers differ in what must be awaited (`start_session`, `aggregate`, `watch`); that is hidden
here. Reads and writes are majority, writes journaled: the defaults were shown to lose acknowledged writes (Jepsen).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Final, Literal, TypeVar, cast

import pymongo
from bson.binary import UUID_SUBTYPE, Binary, UuidRepresentation
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference

from brain.knowledge.connect import Row, Target, open_client
from worker.mongo.errors import doing
from worker.mongo.transactions import MAJORITY, Session, Writer

T = TypeVar("T")

DriverName = Literal["pymongo", "motor"]
Query = Mapping[str, Any]
Write = (
    pymongo.InsertOne[Row]
    | pymongo.UpdateOne
    | pymongo.UpdateMany
    | pymongo.ReplaceOne[Row]
    | pymongo.DeleteOne
    | pymongo.DeleteMany
)

APP_NAME: Final = "trickbook-worker"


class Database:
    """One database. `name` is its name, `client` stays with the one who opened it."""

    def __init__(self, raw: Any, driver: DriverName) -> None:  # noqa: ANN401 - the two drivers share no type
        options = CodecOptions[Row](
            tz_aware=True,
            # A UUID stays binary: one of a wrong length, which anybody can store, would make its answer undecodable.
            uuid_representation=UuidRepresentation.UNSPECIFIED,
            # A date past the year 9999 or a text that is not UTF-8 is an odd value of one field; by default the driver
            # refuses the whole answer for it, and every document in it.
            datetime_conversion=DatetimeConversion.DATETIME_AUTO,
            unicode_decode_error_handler="replace",
        )
        self._raw = raw.with_options(
            codec_options=options,
            read_concern=ReadConcern("majority"),
            write_concern=MAJORITY,
            read_preference=ReadPreference.PRIMARY,
        )
        self._driver: DriverName = driver
        self._writer = Writer(self._begin_session)
        self.name = str(raw.name)

    @property
    def raw(self) -> Any:  # noqa: ANN401 - the two drivers share no type
        """The driver's database, for what both drivers spell alike (`find_one`, `update_one` …)."""
        return self._raw

    async def find(
        self,
        collection: str,
        query: Query,
        projection: Query | None = None,
        *,
        sort: Sequence[tuple[str, int]] = (),
        limit: int = 0,
        session: Session | None = None,
    ) -> list[Row]:
        """The documents found, all of them in memory: bound the query."""
        with doing(f"reading {collection}"):
            cursor = self._raw[collection].find(query, projection, limit=limit, session=_raw(session))
            if sort:
                cursor = cursor.sort(list(sort))
            return cast("list[Row]", await cursor.to_list(None))

    async def find_one(
        self, collection: str, query: Query, projection: Query | None = None, *, session: Session | None = None
    ) -> Row | None:
        """One document, or None."""
        with doing(f"reading {collection}"):
            return await self._raw[collection].find_one(query, projection, session=_raw(session))

    async def find_bytes(self, collection: str, query: Query, *, session: Session | None = None) -> list[bytes]:
        """The documents found as the server sends them, none of them decoded."""
        with doing(f"reading {collection}"):
            options = CodecOptions[RawBSONDocument](document_class=RawBSONDocument)
            cursor = self._raw.with_options(codec_options=options)[collection].find(query, session=_raw(session))
            return [row.raw for row in await cursor.to_list(None)]

    async def each(self, collection: str, query: Query, projection: Query | None = None) -> AsyncIterator[Row]:
        """Every document found, one after the other."""
        with doing(f"reading {collection}"):
            async for row in self._raw[collection].find(query, projection, batch_size=500):
                yield row

    async def aggregate(
        self, collection: str, pipeline: Sequence[Query], *, read_concern: Literal["majority", "local"] = "majority"
    ) -> list[Row]:
        """The documents that the pipeline gives."""
        with doing(f"reading {collection}"):
            asked = self._raw[collection].with_options(read_concern=ReadConcern(read_concern))
            cursor = asked.aggregate(list(pipeline))
            if self._driver == "pymongo":
                cursor = await cursor
            return cast("list[Row]", await cursor.to_list(None))

    async def count(self, collection: str, query: Query) -> int:
        """How many documents match."""
        with doing(f"counting {collection}"):
            return int(await self._raw[collection].count_documents(query))

    async def estimate(self, collection: str) -> int:
        """About how many documents the collection holds, from its metadata."""
        with doing(f"counting {collection}"):
            # Metadata has no majority to read; a majority read concern is refused by some servers here.
            counted = self._raw[collection].with_options(read_concern=ReadConcern("local"))
            return int(await counted.estimated_document_count())

    async def insert(self, collection: str, row: Row) -> None:
        """Insert one document."""
        with doing(f"writing {collection}"):
            await self._raw[collection].insert_one(row)

    async def update(self, collection: str, query: Query, change: Query | list[Query], *, upsert: bool = False) -> int:
        """Update one document; how many matched (an upsert that inserted counts as one)."""
        with doing(f"writing {collection}"):
            result = await self._raw[collection].update_one(query, change, upsert=upsert)
            return int(result.matched_count) + (result.upserted_id is not None)

    async def delete(self, collection: str, query: Query, *, session: Session | None = None) -> int:
        """Delete what matches; how many."""
        with doing(f"deleting from {collection}"):
            return int((await self._raw[collection].delete_many(query, session=_raw(session))).deleted_count)

    async def bulk(
        self, collection: str, writes: Sequence[Write], *, ordered: bool = True, session: Session | None = None
    ) -> int:
        """Do the writes; how many documents matched. Nothing for no writes."""
        if not writes:
            return 0
        with doing(f"writing {collection}"):
            result = await self._raw[collection].bulk_write(list(writes), ordered=ordered, session=_raw(session))
            return int(result.matched_count)

    async def collections(self) -> list[str]:
        """The names of the collections that are there, those of the server itself left out."""
        with doing(f"listing the collections of {self.name}"):
            names = await self._raw.list_collection_names(filter={"type": "collection"})
            return sorted(name for name in names if not name.startswith("system."))

    async def drop(self, collection: str) -> None:
        """Remove a collection with its indexes; nothing happens where there is none."""
        with doing(f"dropping {collection}"):
            await self._raw[collection].drop()

    async def ensure_index(self, collection: str, keys: Sequence[tuple[str, int]], **options: Any) -> None:  # noqa: ANN401 - the server's own
        """Create the index unless it is there."""
        with doing(f"ensuring an index of {collection}"):
            await self._raw[collection].create_index(list(keys), **options)

    async def command(self, command: Query, *, admin: bool = False) -> Row:
        """Run a command on this database or on admin."""
        database = self._raw.client.admin if admin else self._raw
        with doing(f"running {next(iter(command))}"):
            return await database.command(command)

    def beside(self, name: str) -> "Database":
        """Another database of the same server."""
        return Database(self._raw.client[name], self._driver)

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[Session]:
        """A causally consistent session."""
        session = await self._begin_session()
        async with session.raw:
            yield session

    async def transaction(self, body: Callable[[Session], Awaitable[T]]) -> T:
        """Run the body in a transaction, as `Writer.run` does."""
        return await self._writer.run(body)

    async def writer(self) -> bytes:
        """The id of the session of every transaction of this process: what `kill_session` needs when that is gone."""
        session = await self._writer.session()
        return bytes(session.raw.session_id["id"])

    async def kill_session(self, id_: bytes) -> None:
        """Abort the transaction that this session has left open; raises KnowledgeError where the server cannot."""
        await self.command({"killSessions": [{"id": Binary(id_, UUID_SUBTYPE)}]}, admin=True)

    async def end(self) -> None:
        """Give back what was opened here."""
        await self._writer.end()

    async def _begin_session(self) -> Session:
        started = self._raw.client.start_session(causal_consistency=True)
        return Session(await started if self._driver == "motor" else started)

    @asynccontextmanager
    async def watch(self, pipeline: Sequence[Query], **options: Any) -> AsyncGenerator[Any]:  # noqa: ANN401 - the drivers share no type
        """A change stream over the whole database; `session` is among the options."""
        async with AsyncExitStack() as stack:
            with doing("opening the change stream"):
                opened = self._raw.watch(list(pipeline), **options)
                stream = cast("AbstractAsyncContextManager[Any]", await opened if self._driver == "pymongo" else opened)
                # Motor asks the server here, pymongo has done so above.
                followed = await stack.enter_async_context(stream)
            yield followed


def _raw(session: Session | None) -> Any:  # noqa: ANN401 - the driver's own
    return None if session is None else session.raw


@asynccontextmanager
async def connected(target: Target, driver: DriverName) -> AsyncGenerator[Database]:
    """The database of a target; it connects at the first question.

    Raises ConfigurationFault for an address that is none, or when motor is asked for and not installed.
    """
    if driver == "motor":
        from worker.mongo.motor_client import open_motor  # noqa: PLC0415 - only where motor is asked for

        client = open_motor(target, APP_NAME)
        database = Database(client[target.database], driver)
        try:
            yield database
        finally:
            await database.end()
            client.close()
    else:
        opened = open_client(target, APP_NAME)
        database = Database(opened[target.database], driver)
        try:
            yield database
        finally:
            await database.end()
            await opened.close()
