"""`docs-sync`: bring a Docusaurus tree into the `docs` collection, by hash diff."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from brain.knowledge.settings import load
from worker.app import connect
from worker.clock import SystemClock
from worker.commands.where import Where, table
from worker.config import PREFIX, KeylessSettings
from worker.docs_sync import SyncOptions, SyncReport, sync
from worker.errors import ConfigurationFault
from worker.mongo.docs import MongoDocs


@dataclass(frozen=True, slots=True)
class Order:
    """What was typed; `allow` empty falls back to WORKER_DOCS_ALLOW."""

    path: Path
    site: str
    base_url: str
    allow: tuple[str, ...]
    prune: bool
    prune_anyway: bool
    dry_run: bool


async def docs_sync(where: Where, order: Order) -> int:
    """Sync and report; the exit code is the report's."""
    if not order.path.is_dir():
        message = f"{order.path} is no folder that can be read: give the folder that holds the site's pages"
        raise ConfigurationFault(message)
    settings = load(KeylessSettings, os.environ, PREFIX, embedded=where.embedded)
    options = SyncOptions(
        order.site,
        order.base_url,
        order.allow or settings.docs_allow,
        prune=order.prune or order.prune_anyway,
        prune_any=order.prune_anyway,
        dry_run=order.dry_run,
    )
    async with connect(settings, embedded=where.embedded, data=where.data) as connection:
        collection = MongoDocs(connection.database)
        report = await sync(order.path, collection, options, SystemClock().now())
    where.answer(report.as_json(), _shown(report))
    return report.exit_code


def _shown(report: SyncReport) -> Group:
    if not report.allowed:
        words = (
            "Nothing was changed: say which pages riders may read with --allow GLOB (relative to PATH, ** is "
            "everything) or WORKER_DOCS_ALLOW. Found:"
        )
        return Group(Text(words), _folders(report.folders))
    would = "would be " if report.dry_run else ""
    lines = [
        (
            f"site {report.site}: {len(report.added)} {would}added, {len(report.changed)} {would}changed, "
            f"{len(report.removed)} {would}removed, {report.kept} kept, "
            f"{len(report.hidden)} hidden (draft or unlisted), {len(report.not_allowed)} not allowed"
        ),
        *(f"not read: {path}: {problem}" for path, problem in report.problems.items()),
    ]
    if report.gone:
        lines.append(f"{len(report.gone)} stored pages are gone from the folder; --prune removes them")
    if report.refused:
        lines.append(f"refused: {report.refused}")
    return Group(Text("\n".join(lines)))


def _folders(folders: Mapping[str, int]) -> Table:
    return table("folders", ["folder", "pages"], [[name, count] for name, count in folders.items()])
