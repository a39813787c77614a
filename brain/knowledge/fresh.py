"""`fresh`: wait, with a limit, until a document as of some moment is stored, and until searches find it.

    stored       the worker has dealt with all that happened to the document until then: its ledger row is as new, or
                 the worker's position has passed that moment and the row needed no change
    searchable   the index finds each of its chunks by that chunk's own vector: on Atlas it lags the collection, and an
                 exact engine that follows may be a moment behind; None when there is no chunk (hidden, deleted)

What is read is the worker's (`freshness_documents`, `freshness_checkpoints`, `freshness_dead_letters`); nothing is
written.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

import pymongo
from bson import Timestamp
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import PyMongoError

from brain.knowledge.connect import Row
from brain.knowledge.environment import near
from brain.knowledge.errors import IndexNotReady
from brain.knowledge.keys import possible_keys
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.names import CHECKPOINTS, DEAD_LETTERS, LEDGER, SCAN, STREAM_ID
from brain.knowledge.search.service import KnowledgeSearch

LONGEST_WAIT: Final = 60.0  # seconds; whoever waits longer asks again
POLL_SECONDS: Final = 0.1

_READ_SECONDS: Final = 10.0
_MOST_MILLISECONDS: Final = 1 << 42  # a date in the year 2109; beyond it a Timestamp has no seconds
_MOST_NUMBER: Final = 1 << 32
_LONGEST_NAME: Final = 64  # characters of a name in a message


@dataclass(frozen=True, slots=True)
class Since:
    """A moment: an operation time of the database, exact, or milliseconds of the writer's clock.

    Give the operation time where there is one (the session that wrote knows it). Milliseconds are compared with the
    database's whole seconds: a write that follows another of the same document within the same second may be taken for
    stored when the other is, and clocks that differ shift the moment.
    """

    operation_time: Timestamp | None = None
    milliseconds: int = 0

    @classmethod
    def told(cls, value: object) -> "Since":
        """Read what the bridge is told: milliseconds since 1970, or `{t, i}`. Raises ValueError for anything else."""
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_MILLISECONDS:
            return cls(milliseconds=value)
        if isinstance(value, Mapping):
            members = cast("Mapping[str, object]", value)
            numbers = [members.get(name) for name in ("t", "i")]
            whole = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < _MOST_NUMBER]
            if len(members) == len(whole) == len(numbers):
                return cls(Timestamp(*whole))
        message = "since must be milliseconds since 1970, or an operation time as {t, i}"
        raise ValueError(message)

    def covered_by(self, version: Timestamp, stored_at: datetime | None = None) -> bool:
        """Whether what was read at `version` (and stored at `stored_at`) was read at or after this moment."""
        if self.operation_time is not None:
            return version >= self.operation_time
        seconds = self.milliseconds // 1000
        if version.time != seconds or stored_at is None:
            return version.time > seconds
        return stored_at >= datetime.fromtimestamp(self.milliseconds / 1000, UTC)


class UnknownSource(ValueError):
    """The worker follows other collections: no document of this one is ever stored, however long one waits."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """The answer, as of the end of the wait."""

    stored: bool
    searchable: bool | None


async def fresh(
    search: KnowledgeSearch, database: AsyncDatabase[Row], source: str, document_id: object, since: Since, wait: float
) -> Freshness:
    """Wait up to `wait` seconds (0 to LONGEST_WAIT) until the document as of `since` is stored and searchable.

    `document_id` is the `_id`, or its text. Raises ValueError for a wait out of bounds, UnknownSource, and what the
    database and the search raise; an index that is not ready yet is waited for.
    """
    if not 0 <= wait <= LONGEST_WAIT:
        message = f"the wait must be between 0 and {LONGEST_WAIT:g} seconds"
        raise ValueError(message)
    keys = possible_keys(source, document_id)
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    while True:
        answer = await _now(search, database, keys, source, since)
        if (answer.stored and answer.searchable is not False) or loop.time() >= until:
            return answer
        await asyncio.sleep(min(POLL_SECONDS, max(0.0, until - loop.time())))


async def _now(
    search: KnowledgeSearch, database: AsyncDatabase[Row], keys: Sequence[str], source: str, since: Since
) -> Freshness:
    try:
        with pymongo.timeout(_READ_SECONDS):
            stored = await _stored(database, keys, source, since)
    except PyMongoError as exc:
        raise as_knowledge_error(exc, "asking how far the worker is") from exc
    if not stored:
        return Freshness(stored=False, searchable=False)
    try:
        return Freshness(stored=True, searchable=await search.searchable(keys))
    except IndexNotReady:
        return Freshness(stored=True, searchable=False)


async def _stored(database: AsyncDatabase[Row], keys: Sequence[str], source: str, since: Since) -> bool:
    """Whether everything until then is dealt with; what lies as a dead letter is not. Raises UnknownSource."""
    # The position first: what it has passed was stored, or buried, before it was.
    position = await _position(database, source)
    mine: Mapping[str, Any] = {"_id": {"$in": list(keys)}}
    if await database[DEAD_LETTERS].find_one(mine, {"_id": 1}) is not None:
        return False
    rows = await database[LEDGER].find(mine, {"version": 1, "updatedAt": 1}).to_list()
    if position.passed(since) or any(_covered(since, row.get("version"), row.get("updatedAt")) for row in rows):
        return True
    position.check(source)
    return False


@dataclass(frozen=True, slots=True)
class _Position:
    """The worker's position in the stream, and how the scan of one source stands; None for what is not there."""

    stream: Mapping[str, Any] | None
    scan: Mapping[str, Any] | None

    def passed(self, since: Since) -> bool:
        """Whether the position is past that moment, and no scan of the source is under way."""
        scanned = self.scan is not None and self.scan.get("done") is True
        return scanned and self.stream is not None and _covered(since, self.stream.get("at"))

    def check(self, source: str) -> None:
        """Raise UnknownSource when the position speaks of other sources, and no scan brings this one to it."""
        told = None if self.stream is None else self.stream.get("sources")
        followed = [str(one) for one in cast("list[object]", told)] if isinstance(told, list) else [source]
        if source not in followed and (self.scan is None or self.scan.get("done") is True):
            name = ascii(source)[1:-1][:_LONGEST_NAME]
            message = f"no worker follows {name}{near(source, followed)}: it follows {', '.join(followed)}"
            raise UnknownSource(message)


async def _position(database: AsyncDatabase[Row], source: str) -> _Position:
    names = {"_id": {"$in": [STREAM_ID, f"{SCAN}{source}"]}}
    found = database[CHECKPOINTS].find(names, {"at": 1, "done": 1, "sources": 1})
    rows = {row["_id"]: row for row in await found.to_list()}
    return _Position(rows.get(STREAM_ID), rows.get(f"{SCAN}{source}"))


def _covered(since: Since, version: object, stored_at: object = None) -> bool:
    """A row that somebody damaged by hand covers nothing."""
    when = stored_at if isinstance(stored_at, datetime) else None
    return isinstance(version, Timestamp) and since.covered_by(version, when)
