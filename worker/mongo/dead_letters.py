"""Documents that could not be processed: implements `worker.ports.DeadLetters`; one row a document, nothing else."""

from collections.abc import Sequence
from typing import Any

from pymongo import DeleteMany, ReplaceOne, UpdateOne

from worker.model import DeadLetter, DocKey, Leadership
from worker.mongo.driver import Database
from worker.mongo.fence import fence
from worker.mongo.names import DEAD_LETTERS, LEDGER
from worker.mongo.rows import dead_letter, letter_fields
from worker.mongo.transactions import Session


class MongoDeadLetters:
    """Rows of `freshness_dead_letters`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, letter: DeadLetter, leadership: Leadership) -> None:
        """Store or replace the letter; the document's debt is forgotten."""
        name = str(letter.key)
        replace: list[Any] = [ReplaceOne({"_id": name}, letter_fields(letter, leadership.epoch), upsert=True)]
        forget: list[Any] = [UpdateOne({"_id": name}, {"$unset": {"staleSince": ""}})]

        async def body(session: Session) -> None:
            await fence(self._database, leadership, session)
            await self._database.bulk(DEAD_LETTERS, replace, session=session)
            await self._database.bulk(LEDGER, forget, session=session)

        await self._database.transaction(body)

    async def all(self) -> Sequence[DeadLetter]:
        """Every letter, oldest first."""
        return [dead_letter(row) for row in await self._database.find(DEAD_LETTERS, {}, sort=[("firstAt", 1)])]

    async def count(self) -> int:
        """How many there are."""
        return await self._database.count(DEAD_LETTERS, {})

    async def drop(self, keys: Sequence[DocKey], leadership: Leadership) -> int:
        """Forget these letters; how many there were."""
        names = {"_id": {"$in": [str(key) for key in keys]}}

        async def body(session: Session) -> int:
            await fence(self._database, leadership, session)
            found = await self._database.find(DEAD_LETTERS, names, {"_id": 1}, session=session)
            await self._database.bulk(DEAD_LETTERS, [DeleteMany(names)], session=session)
            return len(found)

        return await self._database.transaction(body)
