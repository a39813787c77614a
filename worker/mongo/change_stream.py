"""The tail of the database: implements `worker.ports.ChangeStream`.

One stream over the whole database, because a rename into a watched name shows only there; filtered to what concerns a
watched collection, and projected to which document and when, because the text is read afterwards.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from bson import Timestamp

from worker.errors import HistoryLost, Poison, Unreachable
from worker.model import (
    DocKey,
    DocumentChanged,
    Passed,
    Position,
    SourceArrived,
    SourceGone,
    StreamEvent,
    StreamItem,
)
from worker.mongo.driver import Database
from worker.mongo.errors import doing
from worker.mongo.fragments import Fragments
from worker.mongo.reach import Reach, first_entry
from worker.mongo.silent import Prover
from worker.mongo.tokens import token_time

T = TypeVar("T")

IDLE_MS: Final = 1000
"""How long the server holds a getMore without events: also how often an idle stream moves."""

STALL_SECONDS: Final = 15.0
"""A question that is not answered for so long is believed dead: idle answers come each second."""

PROJECTION: Final = dict.fromkeys(
    ("_id", "operationType", "ns", "to", "documentKey", "clusterTime", "wallTime", "splitEvent"), 1
)
DOCUMENT_OPERATIONS: Final = frozenset({"insert", "update", "replace", "delete"})


class MongoChangeStream:
    """Follows the watched collections of one database.

    `keeps`: how long the server is known to keep its history; where that is not known, its first entry is asked for.
    """

    def __init__(
        self,
        database: Database,
        watched: Collection[str],
        stall: float = STALL_SECONDS,
        keeps: timedelta | None = None,
    ) -> None:
        self._database = database
        self._watched = frozenset(watched)
        self._stall = stall
        self._keeps = keeps
        self._reach = Reach(database)
        self._prover = Prover(database, lambda: asyncio.get_running_loop().time())

    async def now(self) -> Timestamp:
        """The operation time of the majority now."""
        async with self._database.session() as session:
            # A majority read, not a ping: its time is one that a majority has.
            await self._database.find_one("freshness_checkpoints", {"_id": "stream"}, {"_id": 1}, session=session)
            at = session.operation_time
        if at is None:
            message = "the database gives no operation time: change streams need a replica set"
            raise Unreachable(message)
        return at

    async def clock(self) -> datetime | None:
        """The wall time of the primary's host."""
        told = (await self._database.command({"hello": 1}, admin=True)).get("localTime")
        return told.replace(tzinfo=UTC) if isinstance(told, datetime) else None

    async def oldest(self) -> Timestamp | None:
        """The time of the oldest entry of the history, or None where that cannot be known.

        Exact where `local` may be read; else found by trying, and then up to a tenth, or a minute, too late.
        """
        if self._keeps is not None:
            return _before(await self.now(), self._keeps)
        told = await first_entry(self._database)
        if told is not None or await self._prover.silent():
            return told  # a server that is silent refuses no time either
        return await self._reach.oldest(await self.now())

    async def follow(self, position: Position) -> AsyncIterator[StreamItem]:
        """Every step after the position; see the port."""
        if position.token is None:
            await self._answer(self._check_age(position.at))
        await self._answer(self._prover.open(position))
        start: dict[str, Any] = (
            {"start_after": position.token} if position.token is not None else {"start_at_operation_time": position.at}
        )
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(self._database.session())
            session.raw.advance_operation_time(position.at)
            opening = self._database.watch(self._pipeline(), max_await_time_ms=IDLE_MS, session=session.raw, **start)
            stream = await self._answer(stack.enter_async_context(opening))
            at, former = position.at, position.token
            fragments = Fragments()
            while True:
                # Sampled before the next answer, and still only the upper bound of the place it leads to.
                before = session.operation_time or at
                event = fragments.whole(await self._answer(_next(stream)))
                token = stream.resume_token
                ended = event is not None and event.get("operationType") == "invalidate"
                if token is not None and not fragments.open:
                    at = max(at, _place(event, token, before))
                    await self._answer(self._prover.check(Position(at, token), last=ended))
                    # Idle twice at the same place is its end, on a server that writes nothing while nothing happens.
                    behind = 0.0 if event is None and token == former else max(0.0, before.time - at.time)
                    former = token
                    yield StreamItem(self._meaning(event), Position(at, token), behind)
                if ended:
                    return  # its token is the place from which `start_after` opens the next stream

    async def _answer(self, asked: Awaitable[T]) -> T:
        """What the server answers, within the time in which one that lives does.

        An answer that nobody can read would be asked for again and again, so it counts as a lost history.
        """
        try:
            async with asyncio.timeout(self._stall):
                return await asked
        except TimeoutError as error:
            message = f"the change stream has not answered for {self._stall:g} s; it is opened again"
            raise Unreachable(message) from error
        except Poison as error:
            message = f"the change stream cannot get past an event ({error})"
            raise HistoryLost(message) from error

    async def _check_age(self, at: Timestamp) -> None:
        """Raise HistoryLost for a time older than the history, where its first entry is known.

        Every server refuses an old token itself (286), and MongoDB an old time too.
        """
        oldest = await (self.oldest() if self._keeps is not None else first_entry(self._database))
        if oldest is not None and at < oldest:
            message = "the position is older than the oldest entry of the database's history"
            raise HistoryLost(message)

    def _pipeline(self) -> list[Mapping[str, Any]]:
        names = sorted(self._watched)
        concerns = [{"ns.coll": {"$in": names}}, {"to.coll": {"$in": names}}]
        whole = {"operationType": {"$in": ["dropDatabase", "invalidate"]}}
        return [{"$match": {"$or": [*concerns, whole]}}, {"$project": PROJECTION}]

    def _meaning(self, event: Mapping[str, Any] | None) -> StreamEvent:
        if event is None:
            return Passed()
        operation = str(event.get("operationType"))
        source = _collection(event.get("ns"))
        if operation == "dropDatabase":
            return SourceGone(tuple(sorted(self._watched)), operation)
        if operation == "rename":
            target = _collection(event.get("to"))
            # A rename between two watched names is told as an arrival; the source that is gone is swept by its scan.
            if target in self._watched:
                return SourceArrived(target, gone=source if source in self._watched else None)
        if source not in self._watched:
            return Passed(operation)
        if operation in DOCUMENT_OPERATIONS and "_id" in event.get("documentKey", {}):
            return DocumentChanged(DocKey.of(source, event["documentKey"]["_id"]), _wall(event))
        return SourceGone((source,), operation) if operation in {"drop", "rename"} else Passed(operation)


async def _next(stream: Any) -> Mapping[str, Any] | None:  # noqa: ANN401 - the driver's own
    with doing("following the change stream"):
        return await stream.try_next()


def _collection(namespace: Any) -> str:  # noqa: ANN401 - whatever the server sends
    """The collection of a namespace, "" where there is none (dropDatabase)."""
    return str(namespace["coll"]) if namespace and "coll" in namespace else ""


def _place(event: Mapping[str, Any] | None, token: Mapping[str, Any], before: Timestamp) -> Timestamp:
    """When the place of this step is: never later than it truly is."""
    told = None if event is None else event.get("clusterTime")
    return told if isinstance(told, Timestamp) else min(before, token_time(token) or before)


def _before(now: Timestamp, kept: timedelta) -> Timestamp:
    return Timestamp(max(0, now.time - int(kept.total_seconds())), 0)


def _wall(event: Mapping[str, Any]) -> datetime | None:
    wall = event.get("wallTime")
    return wall if isinstance(wall, datetime) else None
