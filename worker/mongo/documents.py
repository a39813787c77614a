"""The source collections, read only: implements `worker.ports.Documents`."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bson import Timestamp

from brain.knowledge.connect import Row
from worker.errors import Poison
from worker.model import DocKey, Document, Reading
from worker.mongo.driver import Database
from worker.mongo.transactions import Session

BATCH: Final = 100
"""Documents of one find: TrickBook's are far below the 16 MB of a reply; larger ones come in more replies."""


class MongoDocuments:
    """Reads documents of the watched collections."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, source: str, ids: Sequence[DocKey], after: Timestamp | None = None) -> Reading:
        """The documents with these ids, majority and causally consistent, as of `after` or later.

        The reading's time is the operation time of the last answer: reads of one process go to the primary one after
        the other, so a later reading never has an earlier time.
        """
        found: dict[DocKey, Document] = {}
        unreadable: dict[DocKey, str] = {}
        async with self._database.session() as session:
            if after is not None:
                session.raw.advance_operation_time(after)
            for batch in _batches(ids):
                rows, damaged = await self._readable(source, batch, session)
                found.update((DocKey.of(source, row["_id"]), row) for row in rows)
                unreadable.update(damaged)
            if not ids:
                await self._database.command({"ping": 1})
            at = session.operation_time
        return Reading(found, at if at is not None else after or Timestamp(0, 0), unreadable)

    async def _readable(
        self, source: str, keys: Sequence[DocKey], session: Session
    ) -> tuple[Sequence[Row], Mapping[DocKey, str]]:
        """The documents, and those that cannot be read: one spoils the answer for all, so it is found by halving."""
        try:
            return await self._database.find(source, _with_ids(keys), session=session), {}
        except Poison as error:
            if len(keys) == 1:
                return [], {keys[0]: await self._digest(source, keys, session, error)}
        half = len(keys) // 2
        first, one = await self._readable(source, keys[:half], session)
        second, other = await self._readable(source, keys[half:], session)
        return [*first, *second], {**one, **other}

    async def _digest(self, source: str, keys: Sequence[DocKey], session: Session, error: Poison) -> str:
        """Of the document's bytes; where not even those can be had, of why not."""
        try:
            content = b"".join(await self._database.find_bytes(source, _with_ids(keys), session=session))
        except Poison:
            content = str(error).encode()
        return hashlib.sha256(content).hexdigest()

    async def page(self, source: str, after: DocKey | None, limit: int) -> Sequence[DocKey]:
        """The next `limit` ids in the order of `_id`, after the given one.

        Compared by an expression: a plain `$gt` sees only ids of the same BSON type and would pass over the rest.
        """
        query: dict[str, Any] = {} if after is None else {"$expr": {"$gt": ["$_id", {"$literal": after.raw}]}}
        rows = await self._database.find(source, query, {"_id": 1}, sort=[("_id", 1)], limit=limit)
        return [DocKey.of(source, row["_id"]) for row in rows]

    async def absent(self, source: str, keys: Sequence[DocKey]) -> Sequence[DocKey]:
        """Those of the keys that no document has now."""
        present: set[DocKey] = set()
        for batch in _batches(keys):
            rows = await self._database.find(source, _with_ids(batch), {"_id": 1})
            present.update(DocKey.of(source, row["_id"]) for row in rows)
        return [key for key in keys if key not in present]

    async def estimate(self, source: str) -> int:
        """About how many documents there are."""
        return await self._database.estimate(source)


def _with_ids(keys: Sequence[DocKey]) -> Mapping[str, Any]:
    return {"_id": {"$in": [key.raw for key in keys]}}


def _batches(keys: Sequence[DocKey]) -> Iterator[Sequence[DocKey]]:
    for start in range(0, len(keys), BATCH):
        yield keys[start : start + BATCH]
