"""`search`: the chunks nearest to a question, as a table for people or as JSON for programs."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import click
from bson import Timestamp

from brain.commands.where import Where
from brain.config import BrainSettings
from brain.knowledge.connect import opened
from brain.knowledge.embedding.pinned import PinnedClients
from brain.knowledge.errors import EXIT_OK
from brain.knowledge.search.service import Found, KnowledgeSearch

_SHOWN: Final = 240  # characters of a text in the table


@dataclass(frozen=True, slots=True)
class Question:
    """What was typed; `sport` is canonical."""

    query: str
    sport: str | None
    doc_type: str | None
    limit: int


def run(question: Question, where: Where) -> int:
    """Answer on stdout; raises KnowledgeError."""
    settings = where.settings(embedding=True)
    found = asyncio.run(_search(question, settings, where.data))
    if where.as_json:
        click.echo(as_json(found))
    else:
        _show(found, settings.site_origin or "")
    return EXIT_OK


async def _search(question: Question, settings: BrainSettings, data: Path | None) -> Found:
    embedder = PinnedClients(settings)
    try:
        async with opened(settings, data) as database:
            search = KnowledgeSearch(database, embedder, settings.vector_search)
            return await search.search(question.query, question.sport, question.doc_type, question.limit)
    finally:
        await embedder.close()


def as_json(found: Found) -> str:
    """One JSON object: hits (`_id`, `score`, the stored fields), pin, engine."""
    hits = [{"_id": hit.id, "score": hit.score, **hit.fields} for hit in found.hits]
    return json.dumps({"hits": hits, "pin": found.pin.as_row(), "engine": found.engine}, default=_plain)


def _plain(value: object) -> object:
    """BSON's types as JSON: dates in ISO 8601, timestamps as the bridge writes them, the rest as text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Timestamp):
        return {"t": value.time, "i": value.inc}
    return str(value)


def _show(found: Found, origin: str) -> None:
    from rich.console import Console  # noqa: PLC0415 slow to import, and --json needs none of it
    from rich.table import Table  # noqa: PLC0415 likewise
    from rich.text import Text  # noqa: PLC0415 likewise

    if not found.hits:
        click.echo("Nothing found.", err=True)
        return
    table = Table(show_lines=True)
    for heading in ("score", "kind", "sport", "what"):
        table.add_column(heading, no_wrap=heading != "what")
    for hit in found.hits:
        what = Text(_field(hit.fields, "title"), style="bold")
        what.append(f"\n{_shortened(_field(hit.fields, 'text'))}", style="not bold")
        url = _field(hit.fields, "url")
        if url:
            what.append(f"\n{origin}{url}", style="not bold dim")
        table.add_row(f"{hit.score:.3f}", Text(_field(hit.fields, "docType")), Text(_field(hit.fields, "sport")), what)
    console = Console()
    console.print(table)
    console.print(Text(f"{found.engine} search, {found.pin.model} ({found.pin.dimensions})", style="dim"))


def _field(fields: Mapping[str, object], name: str) -> str:
    """A field as text that cannot steer a terminal: documents are written by strangers."""
    value = fields.get(name)
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else " " for c in text)


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
