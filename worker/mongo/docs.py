"""The docs collection on MongoDB: pages by site and path, written in batches.

Rows are found by `site` and `path`, not by `_id`, so that a row somebody wrote by hand is taken over and not doubled.
"""

from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, Protocol

from pymongo import DeleteMany, UpdateOne
from pymongo.errors import PyMongoError

from brain.knowledge.mongo_errors import as_knowledge_error
from worker.docs_sync.plan import SyncPlan

BATCH: Final = 100
"""Writes in one request."""

Write = UpdateOne | DeleteMany


class AsyncCollection(Protocol):
    """What is used of a driver's collection; PyMongo's and Motor's both have it."""

    def find(self, selector: Mapping[str, object], fields: Mapping[str, int], /) -> AsyncIterable[Mapping[str, object]]:
        """The matching documents."""
        ...

    async def bulk_write(self, requests: Sequence[Write], /) -> object:
        """Do these writes in order."""
        ...


class MongoDocs:
    """`worker.docs_sync.DocsCollection` on the docs collection."""

    def __init__(self, collection: AsyncCollection) -> None:
        self._collection = collection

    async def stored(self, site: str) -> Mapping[str, str]:
        """The hash of every stored page of a site, by path; '' for a row without one."""
        found: dict[str, str] = {}
        try:
            async for row in self._collection.find({"site": site}, {"path": 1, "hash": 1}):
                path, known = row.get("path"), row.get("hash")
                if isinstance(path, str):
                    found[path] = known if isinstance(known, str) else ""
        except PyMongoError as error:
            raise as_knowledge_error(error, "reading the docs collection") from error
        return found

    async def apply(self, plan: SyncPlan, now: datetime) -> None:
        """Write what the plan adds and changes, then remove what it removes. A second run finishes a broken one."""
        writes = _writes(plan, now)
        try:
            while batch := list(islice(writes, BATCH)):
                await self._collection.bulk_write(batch)
        except PyMongoError as error:
            raise as_knowledge_error(error, "writing the docs collection") from error


def _writes(plan: SyncPlan, now: datetime) -> Iterator[Write]:
    for page in (*plan.add, *plan.change):
        where = {"site": page.site, "path": page.path}
        row = {key: value for key, value in page.as_row(now).items() if key not in where}
        yield UpdateOne(where, {"$set": row, "$setOnInsert": {"_id": page.id}}, upsert=True)
    for path in plan.remove:
        yield DeleteMany({"site": plan.site, "path": path})
