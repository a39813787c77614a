"""`indexes`: which indexes of the tools are there; with `--ensure` the missing ones are made."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from brain.config import PREFIX, BrainSettings
from brain.errors import EXIT_FAILED, EXIT_OK
from brain.knowledge.connect import find_target, open_client
from brain.knowledge.settings import load
from brain.trickbook.indexes import IndexReport, index_report


def run(data: Path | None, *, ensure: bool, as_json: bool) -> int:
    """Tell on stdout; the exit code is 1 when an index is missing or was refused. Raises KnowledgeError."""
    settings = load(BrainSettings, os.environ, PREFIX, embedded=data is not None)
    if data is None:
        settings.require("ATLAS_URI", environ=os.environ)
    found = asyncio.run(_indexes(settings, data, ensure=ensure))
    complete = all(index.state in {"there", "made"} for index in found)
    if as_json:
        click.echo(json.dumps({"ok": complete, "indexes": [asdict(index) for index in found]}))
    else:
        _show(found)
    return EXIT_OK if complete else EXIT_FAILED


async def _indexes(settings: BrainSettings, data: Path | None, *, ensure: bool) -> list[IndexReport]:
    uri = None if settings.atlas_uri is None else settings.atlas_uri.get_secret_value()
    target = await asyncio.to_thread(find_target, uri, settings.atlas_db, data)
    client = open_client(target)
    try:
        return await index_report(client[target.database], embedded=target.embedded, make=ensure)
    finally:
        await client.close()


def _show(found: Sequence[IndexReport]) -> None:
    from rich.console import Console  # noqa: PLC0415 slow to import, and --json needs none of it
    from rich.table import Table  # noqa: PLC0415 likewise

    table = Table("collection", "keys", "state", "what to do")
    for index in found:
        todo = "run `python -m brain indexes --ensure`" if index.state == "missing" else index.reason or ""
        table.add_row(index.collection, ", ".join(index.keys), index.state, todo)
    Console().print(table)
