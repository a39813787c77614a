"""Everything that a call of a tool needs, put together from the settings: for every door that calls tools."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pymongo.asynchronous.database import AsyncDatabase

from brain.config import BrainSettings
from brain.knowledge.connect import Row, opened
from brain.knowledge.embedding.pinned import PinnedClients
from brain.knowledge.search.service import KnowledgeSearch
from brain.registry import CallLog, Registry
from brain.tool import Knowledge, ToolContext
from brain.tools import ALL_TOOLS


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
    opened by the first search, so that tools without one need no key. Raises KnowledgeError.
    """
    embedder = PinnedClients(settings)
    try:
        async with opened(settings, data) as database:
            search = KnowledgeSearch(database, embedder, settings.vector_search, follow=follow)
            try:
                registry = Registry(ALL_TOOLS, CallLog(arguments=settings.log_arguments))
                yield Toolbox(registry, database, search, settings.site_origin or "")
            finally:
                await search.close()
    finally:
        await embedder.close()
