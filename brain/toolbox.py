"""Everything that a call of a tool needs, put together from the settings: for every door that calls tools."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pymongo
from pymongo.asynchronous.database import AsyncDatabase

from brain.config import BrainSettings
from brain.knowledge.connect import Row, opened
from brain.knowledge.embedding.pinned import PinnedClients
from brain.knowledge.errors import KnowledgeError
from brain.knowledge.log import log
from brain.knowledge.search.service import KnowledgeSearch
from brain.registry import CallLog, Registry
from brain.tool import Knowledge, ToolContext
from brain.tools import ALL_TOOLS
from brain.trickbook.indexes import ensure_indexes

MOST_SECONDS: Final = 10.0
"""For the indexes of an embedded database: 0.02 s when they are there, 3 s to make them all over the sample."""

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The registry of all tools, and what their contexts hold."""

    registry: Registry
    database: AsyncDatabase[Row]
    knowledge: Knowledge
    origin: str

    def context(
        self, user_id: str | None = None, *, companion_id: str | None = None, turn_id: str | None = None
    ) -> ToolContext:
        """A context for this rider, whom the caller has authenticated."""
        return ToolContext(
            self.database,
            self.knowledge,
            lambda: datetime.now(UTC),
            user_id=user_id,
            companion_id=companion_id,
            turn_id=turn_id,
            origin=self.origin,
        )


@asynccontextmanager
async def toolbox(settings: BrainSettings, data: Path | None, *, follow: bool = False) -> AsyncGenerator[Toolbox]:
    """Open the database (the embedded one in `data`, else ATLAS_URI) and the search; both are closed at the end.

    `follow` is for doors that live long: their search shows what the worker publishes meanwhile. The embedding model is
    opened by the first search, so that tools without one need no key. The tools' indexes are made where they are
    missing, by doors that live long and in an embedded database. Raises KnowledgeError.
    """
    embedder = PinnedClients(settings)
    try:
        async with opened(settings, data) as database, _indexed(database, embedded=data is not None, follow=follow):
            search = KnowledgeSearch(database, embedder, settings.vector_search, follow=follow)
            try:
                registry = Registry(ALL_TOOLS, CallLog(arguments=settings.log_arguments))
                yield Toolbox(registry, database, search, settings.site_origin or "")
            finally:
                await search.close()
    finally:
        await embedder.close()


@asynccontextmanager
async def _indexed(database: AsyncDatabase[Row], *, embedded: bool, follow: bool) -> AsyncGenerator[None]:
    """Make the tools' indexes: in an embedded database at once, elsewhere beside the work of a door that lives long."""
    if embedded:
        with pymongo.timeout(MOST_SECONDS):
            await _ensure(database, embedded=True)
    ensuring = {asyncio.create_task(_ensure(database))} if follow and not embedded else set[asyncio.Task[None]]()
    try:
        yield
    finally:
        for task in ensuring:
            task.cancel()
        await asyncio.gather(*ensuring, return_exceptions=True)


async def _ensure(database: AsyncDatabase[Row], *, embedded: bool = False) -> None:
    """Make what is missing; where that fails the tools answer all the same, more slowly, and the log says why."""
    try:
        await ensure_indexes(database, embedded=embedded)
    except KnowledgeError as exc:
        log(_LOGGER, logging.WARNING, "tool_indexes", f"not every index of the tools is there: {exc}")
