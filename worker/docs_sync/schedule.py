"""docs-sync by the clock: what the leader does where WORKER_DOCS_PATH names a folder.

Nothing that goes wrong here stops the worker or unreadies it: what is stored stays, a log line says what a person
should look at, and the next look may find it mended (a deployment brings the folder, somebody fixes a page).
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from brain.knowledge.log import log
from worker.clock import Clock
from worker.config import WorkerSettings
from worker.docs_sync.sync import DocsCollection, SyncOptions, SyncReport, sync
from worker.errors import KnowledgeError

_NAMED: Final = 5  # paths that one log line names
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Which folder is synced, how, and how many seconds lie between two looks at it."""

    root: Path
    options: SyncOptions
    every: float

    @classmethod
    def of(cls, settings: WorkerSettings) -> "Schedule | None":
        """What the settings ask for; None when they name no folder."""
        if settings.docs_path is None:
            return None
        options = SyncOptions(settings.docs_site, settings.docs_base_url, settings.docs_allow, prune=True)
        return cls(settings.docs_path, options, settings.docs_minutes * 60)


async def keep_docs(schedule: Schedule, collection: DocsCollection, clock: Clock) -> None:
    """Sync at once and then by the clock, for ever. Pages that are gone are removed, within `plan_sync`'s bound."""
    while True:
        try:
            _tell(await sync(schedule.root, collection, schedule.options, clock.now()))
        except (KnowledgeError, OSError) as error:
            words = f"the docs could not be synced and stay as they are: {error}"
            log(_logger, logging.WARNING, "docs_sync_failed", words, site=schedule.options.site)
        await clock.sleep(schedule.every)


def _tell(report: SyncReport) -> None:
    """Say what was done, if anything, and what a person should look at."""
    done = {"added": len(report.added), "changed": len(report.changed), "removed": len(report.removed)}
    if any(done.values()):
        words = ", ".join(f"{count} {what}" for what, count in done.items())
        log(_logger, logging.INFO, "docs_synced", f"docs: {words}, {report.kept} kept", site=report.site, **done)
    if report.problems:
        words = f"pages that cannot be read, and stay as they are stored: {_some([*report.problems])}"
        log(_logger, logging.WARNING, "docs_not_read", words, site=report.site, pages=len(report.problems))
    if report.refused:
        words = f"nothing was removed: {report.refused}; if it is meant: docs-sync PATH --prune-anyway"
        log(_logger, logging.WARNING, "docs_prune_refused", words, site=report.site, gone=len(report.gone))


def _some(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")
