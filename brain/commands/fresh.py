"""`fresh`: wait until a document is stored and searchable as of a moment, for a script that has just saved it."""

import asyncio
import json
import time
from dataclasses import asdict, dataclass

import click

from brain.commands.where import Where
from brain.config import BrainSettings
from brain.knowledge.connect import opened
from brain.knowledge.embedding.pinned import PinnedClients
from brain.knowledge.errors import EXIT_DIFFERENCES, EXIT_OK
from brain.knowledge.fresh import Freshness, Since, UnknownSource, fresh
from brain.knowledge.search.service import KnowledgeSearch


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed; `since` is milliseconds or {"t", "i"} as JSON text (None: now), `wait` is in seconds."""

    source: str
    document_id: str
    since: str | None
    wait: float


def run(wanted: Wanted, where: Where) -> int:
    """Tell on stdout; the exit code is 1 when the wait ended before. Raises UsageError and KnowledgeError."""
    since = Since(milliseconds=time.time_ns() // 1_000_000) if wanted.since is None else _since(wanted.since)
    try:
        found = asyncio.run(_fresh(wanted, since, where))
    except UnknownSource as exc:
        raise click.UsageError(str(exc)) from exc
    ok = found.stored and found.searchable is not False
    if where.as_json:
        click.echo(json.dumps({"ok": ok, **asdict(found)}))
    else:
        click.echo(_said(found))
    return EXIT_OK if ok else EXIT_DIFFERENCES


async def _fresh(wanted: Wanted, since: Since, where: Where) -> Freshness:
    settings: BrainSettings = where.settings()
    embedder = PinnedClients(settings)  # which nothing asks: each chunk is looked for by its own vector
    async with opened(settings, where.data) as database:
        search = KnowledgeSearch(database, embedder, settings.vector_search, follow=True)
        try:
            return await fresh(search, database, wanted.source, wanted.document_id, since, wanted.wait)
        finally:
            await search.close()
            await embedder.close()


def _since(text: str) -> Since:
    try:
        return Since.told(json.loads(text))
    except (ValueError, RecursionError) as exc:
        message = '--since: milliseconds since 1970, or an operation time as {"t": …, "i": …}'
        raise click.UsageError(message) from exc


def _said(found: Freshness) -> str:
    if not found.stored:
        return "not stored yet"
    if found.searchable is None:
        return "stored, and nothing to search: it is deleted, hidden or empty"
    return "stored, and searches find it" if found.searchable else "stored, and searches do not find it yet"
