"""Sessions and transactions: those of a process all run in one session, one after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from worker.errors import Conflict, KnowledgeError
from worker.mongo.errors import doing, may_pass

T = TypeVar("T")

MAJORITY: Final = WriteConcern(w="majority", j=True)
TRANSACTION_TRIES: Final = 5
_END_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Session:
    """A driver's session, opaque to the adapters but for its operation time."""

    raw: Any

    @property
    def operation_time(self) -> Any:  # noqa: ANN401 - a bson Timestamp, or None before the first answer
        """The operation time of the last answer in this session."""
        return self.raw.operation_time


class Writer:
    """Runs transactions in the session that `begin` gives, which is opened at the first.

    One whose caller is cancelled runs to its end, and the next one waits for that: a driver that works in threads would
    go on with the half of it, in the same session.
    """

    def __init__(self, begin: Callable[[], Awaitable[Session]]) -> None:
        self._begin = begin
        self._turn = asyncio.Lock()
        self._session: Session | None = None
        self._running: asyncio.Future[Any] | None = None

    async def run(self, body: Callable[[Session], Awaitable[T]]) -> T:
        """Run the body in a transaction, again when it met another writer; raises Conflict when it met one each time.

        Nothing of it is stored then. The body may run several times.
        """
        async with self._turn:
            if self._running is not None:
                await asyncio.wait([self._running])
            running = self._running = asyncio.ensure_future(self._run(body))
            return await asyncio.shield(running)

    async def session(self) -> Session:
        """The session of every transaction."""
        if self._session is None:
            begun = await self._begin()
            self._session = self._session or begun
        return self._session

    async def end(self) -> None:
        """Give the session back; what still runs in it has had its time."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running], timeout=_END_SECONDS)
        if self._session is not None:
            with doing("ending a session"):
                await self._session.raw.end_session()
            self._session = None

    async def _run(self, body: Callable[[Session], Awaitable[T]]) -> T:
        session = await self.session()
        for _ in range(TRANSACTION_TRIES - 1):
            try:
                return await _attempt(session, body)
            except Conflict:
                continue
        return await _attempt(session, body)


async def _attempt(session: Session, body: Callable[[Session], Awaitable[T]]) -> T:
    async def within(_raw_session: object) -> T:
        return await body(session)

    options = {"read_concern": ReadConcern("snapshot"), "write_concern": MAJORITY}
    try:
        with doing("storing in a transaction"):
            return cast("T", await session.raw.with_transaction(within, **options))
    except KnowledgeError as error:
        if not may_pass(error):
            raise
        raise Conflict(str(error)) from error
