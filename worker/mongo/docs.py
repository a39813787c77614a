"""The docs collection on MongoDB: pages by site and path, written in batches.

Rows are found by `site` and `path`, not by `_id`, so that a row somebody wrote by hand is taken over and not doubled.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final

from pymongo import DeleteMany, UpdateOne

from worker.docs_sync.plan import SyncPlan
from worker.model import Leadership
from worker.mongo.driver import Database, Session
from worker.mongo.fence import fence

BATCH: Final = 100
"""Writes in one request."""
COLLECTION: Final = "docs"


class MongoDocs:
    """`worker.docs_sync.DocsCollection` on the docs collection.

    With a leadership nothing is written after it is over (FencedOff); a person's command needs none.
    """

    def __init__(self, database: Database, leadership: Leadership | None = None) -> None:
        self._database = database
        self._leadership = leadership

    async def stored(self, site: str) -> Mapping[str, str]:
        """The hash of every stored page of a site, by path; '' for a row without one."""
        found: dict[str, str] = {}
        async for row in self._database.each(COLLECTION, {"site": site}, {"path": 1, "hash": 1}):
            path, known = row.get("path"), row.get("hash")
            if isinstance(path, str):
                found[path] = known if isinstance(known, str) else ""
        return found

    async def apply(self, plan: SyncPlan, now: datetime) -> None:
        """Write what the plan adds and changes, then remove what it removes. A second run finishes a broken one."""
        writes = _writes(plan, now)
        while batch := list(islice(writes, BATCH)):
            await self._write(batch)

    async def _write(self, batch: Sequence[UpdateOne | DeleteMany]) -> None:
        if (leadership := self._leadership) is None:
            await self._database.bulk(COLLECTION, batch)
            return

        async def body(session: Session) -> None:
            await fence(self._database, leadership, session)
            await self._database.bulk(COLLECTION, batch, session=session)

        await self._database.transaction(body)


def _writes(plan: SyncPlan, now: datetime) -> Iterator[UpdateOne | DeleteMany]:
    for page in (*plan.add, *plan.change):
        where = {"site": page.site, "path": page.path}
        row = {key: value for key, value in page.as_row(now).items() if key not in where}
        yield UpdateOne(where, {"$set": row, "$setOnInsert": {"_id": page.id}}, upsert=True)
    for path in plan.remove:
        yield DeleteMany({"site": plan.site, "path": path})
