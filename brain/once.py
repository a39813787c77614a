"""A write happens once per (user, turn, tool, arguments), also when its answer was lost and the turn is repeated.

One transaction holds the handler's writes and a journal row with the answer. So either both are there or neither: a
process that is killed in between, a failure that a handler raises and a timeout leave nothing; a repeat finds the row
and gives the stored answer without running. Of two at the same time one inserts its row, the other conflicts with it,
waits, and finds it. A failure is not journalled: it changed nothing, so the repeat may try again.

The transaction of a process that was killed stays open at the server until its limit (MongoDB's default: 60 s). Until
then the repeat conflicts with a twin that will never answer: after `PATIENCE` it is told to come again.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, cast

from pymongo import IndexModel, WriteConcern
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import DuplicateKeyError, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern

from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.log import log
from brain.tool import Card, ToolContext

JOURNAL: Final = "companion_tool_calls"
KEPT: Final = timedelta(days=7)
"""How long an answer can be asked for again. A turn is repeated within minutes; a week outlasts any outage."""

INDEX: Final = IndexModel("at", name="expiry", expireAfterSeconds=int(KEPT.total_seconds()))

PATIENCE: Final = 5.0
"""Seconds that a call waits for its twin."""

_LOOK_AGAIN: Final = 0.05  # seconds between two looks for the twin's answer
_WRITE_CONFLICT: Final = 112

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave, as it is told and as it is kept."""

    text: str
    cards: tuple[Card, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """What is done once: a tool's name with its arguments in canonical JSON, in a turn of a user."""

    tool: str
    arguments: str
    user: str | None
    turn: str

    @property
    def key(self) -> str:
        """The row's id."""
        parts = json.dumps([self.user, self.turn, self.tool, self.arguments])
        return hashlib.sha256(parts.encode()).hexdigest()


class _Taken(Exception):
    """A twin of this call has its row: committed, or in a transaction that is still open."""


Work = Callable[[ToolContext], Awaitable[Answer]]


class Journal:
    """The journal of one process; its index is ensured before the first write to a database."""

    def __init__(self) -> None:
        self._ensured: set[str] = set()

    async def once(self, call: Call | None, context: ToolContext, work: Work) -> Answer:
        """The answer of `work`, run in a transaction (the context's session) unless the journal holds it already.

        Without a call (the turn has no name) nothing is journalled, and the transaction alone holds. Transient errors
        of a transaction are tried again until the caller's deadline: an aborted one has left nothing. Raises what
        `work` raises, the driver's errors, and ToolFailure (`conflict`) when a twin does not end.
        """
        if call is None:
            return await _in_transaction(context, work)
        await self._ensure(context.database)
        clock = asyncio.get_running_loop().time
        until = clock() + PATIENCE
        while clock() < until:
            stored = await context.database[JOURNAL].find_one({"_id": call.key})
            if stored is not None:
                return _answer(stored)
            try:
                return await _in_transaction(context, lambda inner: _journalled(call, inner, work))
            except _Taken:
                await asyncio.sleep(_LOOK_AGAIN)
        message = "an earlier attempt at exactly this has not ended; nothing was done now; try again in a minute"
        raise ToolFailure(code="conflict", message=message, retryable=True)

    async def _ensure(self, database: AsyncDatabase[Row]) -> None:
        if database.name in self._ensured:
            return
        try:
            await database[JOURNAL].create_indexes([INDEX])
        except PyMongoError as exc:  # without the index rows stay longer; that is no reason to refuse a rider
            log(_LOGGER, logging.WARNING, "journal_index", f"{JOURNAL} has no expiry index ({type(exc).__name__})")
        self._ensured.add(database.name)


async def one_at_a_time(context: ToolContext, what: str) -> None:
    """Let writes conflict that share a limit or a name, though they change different rows; call it before you look.

    Of two transactions that come here with one `what`, the later one is begun again and sees what the other did.
    """
    row = {"_id": what}
    change = {"$set": {"at": context.now()}}
    await context.database[JOURNAL].update_one(row, change, upsert=True, session=context.session)


async def _in_transaction(context: ToolContext, work: Work) -> Answer:
    async def body(session: AsyncClientSession) -> Answer:
        return await work(replace(context, session=session))

    async with context.database.client.start_session() as session:
        return await session.with_transaction(body, ReadConcern("snapshot"), WriteConcern("majority"))


async def _journalled(call: Call, context: ToolContext, work: Work) -> Answer:
    """Row first, so that a twin conflicts before it has done anything; the answer into it at the end."""
    journal = context.database[JOURNAL]
    row = {"_id": call.key, "tool": call.tool, "userId": call.user, "at": context.now()}
    try:
        await journal.insert_one(row, session=context.session)
    except DuplicateKeyError:
        raise _Taken from None
    except OperationFailure as exc:
        if exc.code != _WRITE_CONFLICT:
            raise
        raise _Taken from None
    answer = await work(context)
    cards = [{"type": card.type, "data": dict(card.data)} for card in answer.cards]
    kept = {"text": answer.text, "cards": cards, "links": list(answer.links)}
    await journal.update_one({"_id": call.key}, {"$set": kept}, session=context.session)
    return answer


def _answer(row: Mapping[str, Any]) -> Answer:
    cards = tuple(Card(card["type"], card["data"]) for card in cast("Sequence[Mapping[str, Any]]", row["cards"]))
    return Answer(row["text"], cards, tuple(row["links"]))
