"""Writes sample data and the demo's edits: the only writer of source collections beside docs-sync.

It takes the embedded server that this project started as its proof, never an address: it cannot reach a real database.
"""

from collections.abc import Mapping
from typing import Any, Self, cast

from pymongo.errors import PyMongoError

from brain.knowledge.connect import Row, Target, as_knowledge_error, open_client
from worker.embedded import EmbeddedServer
from worker.model import Document
from worker.sample import Sample

_BATCH = 500


class SampleWriter:
    """A context manager: a connection of its own to the embedded server."""

    def __init__(self, server: EmbeddedServer, database: str) -> None:
        self.uri = server.uri
        self._client = open_client(Target(server.uri, database, embedded=True), "trickbook-sample")
        self._database = self._client[database]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._client.close()

    async def fill_if_empty(self, sample: Sample) -> int:
        """Insert every row of the sample when none of its collections holds any; how many were inserted."""
        try:
            for name in sample.rows:
                if await self._database[name].find_one({}, {"_id": 1}) is not None:
                    return 0
            for name, rows in sample.rows.items():
                for start in range(0, len(rows), _BATCH):
                    await self._database[name].insert_many(cast("list[Row]", rows[start : start + _BATCH]))
        except PyMongoError as error:
            raise as_knowledge_error(error, "loading the sample data") from error
        return sum(len(rows) for rows in sample.rows.values())

    async def find(self, collection: str, query: Mapping[str, Any]) -> Document | None:
        """One document."""
        try:
            return await self._database[collection].find_one(query)
        except PyMongoError as error:
            raise as_knowledge_error(error, f"reading {collection}") from error

    async def update(self, collection: str, query: Mapping[str, Any], change: Mapping[str, Any]) -> None:
        """Set fields of one document."""
        try:
            await self._database[collection].update_one(query, {"$set": change})
        except PyMongoError as error:
            raise as_knowledge_error(error, f"editing {collection}") from error

    async def delete(self, collection: str, query: Mapping[str, Any]) -> None:
        """Delete one document."""
        try:
            await self._database[collection].delete_one(query)
        except PyMongoError as error:
            raise as_knowledge_error(error, f"deleting from {collection}") from error
