"""`indexes`: which indexes of the tools are there; with `--ensure` the missing ones are made."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from brain.commands.where import Where
from brain.config import BrainSettings
from brain.knowledge.connect import opened
from brain.knowledge.errors import EXIT_DIFFERENCES, EXIT_OK
from brain.trickbook.indexes import IndexReport, index_report


def run(where: Where, *, ensure: bool) -> int:
    """Tell on stdout; the exit code is 1 when an index is missing or was refused. Raises KnowledgeError."""
    found = asyncio.run(_indexes(where.settings(), where.data, ensure=ensure))
    complete = all(index.state in {"there", "made"} for index in found)
    if where.as_json:
        click.echo(json.dumps({"ok": complete, "indexes": [asdict(index) for index in found]}))
    else:
        _show(found, where)
    return EXIT_OK if complete else EXIT_DIFFERENCES


async def _indexes(settings: BrainSettings, data: Path | None, *, ensure: bool) -> list[IndexReport]:
    async with opened(settings, data) as database:
        return await index_report(database, embedded=data is not None, make=ensure)


def _show(found: Sequence[IndexReport], where: Where) -> None:
    from rich.console import Console  # noqa: PLC0415 slow to import, and --json needs none of it
    from rich.table import Table  # noqa: PLC0415 likewise

    table = Table("collection", "keys", "state", "why")
    for index in found:
        table.add_row(index.collection, ", ".join(index.keys), index.state, index.reason or "")
    Console().print(table)
    if any(index.state == "missing" for index in found):  # not in the table, which would break what is to be copied
        click.echo(f"To make the missing ones: python -m brain indexes --ensure{where.words}")
