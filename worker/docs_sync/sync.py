"""The whole run: read the tree, compare, write, report."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from worker.docs_sync.plan import SyncPlan, plan_sync
from worker.docs_sync.tree import Tree, read_tree
from worker.errors import EXIT_DIFFERENCES, EXIT_OK, EXIT_USAGE


class DocsCollection(Protocol):
    """The docs collection; adapters raise errors of the tree in `worker.errors` only."""

    async def stored(self, site: str) -> Mapping[str, str]:
        """The hash of every stored page of a site, by path."""
        ...

    async def apply(self, plan: SyncPlan, now: datetime) -> None:
        """Write what the plan adds and changes, then remove what it removes."""
        ...


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """What the operator asked for. `allow` are globs relative to the folder; without any nothing is changed."""

    site: str = "docs"
    base_url: str = "/docs"
    allow: tuple[str, ...] = ()
    prune: bool = False
    prune_any: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What was done (with `dry_run`: what would be), by path."""

    site: str
    dry_run: bool = False
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: int = 0
    gone: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    not_allowed: tuple[str, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    folders: Mapping[str, int] = field(default_factory=dict[str, int])
    refused: str | None = None
    allowed: bool = True

    @property
    def exit_code(self) -> int:
        """64 without an allow-list, 1 when a file could not be read or a removal was refused, else 0."""
        if not self.allowed:
            return EXIT_USAGE
        return EXIT_DIFFERENCES if self.problems or self.refused else EXIT_OK

    def as_json(self) -> dict[str, object]:
        """The report as one JSON value; `folders` counts the pages in each folder, allowed or not."""
        return {
            "site": self.site,
            "dryRun": self.dry_run,
            "added": list(self.added),
            "changed": list(self.changed),
            "removed": list(self.removed),
            "kept": self.kept,
            "gone": list(self.gone),
            "hidden": list(self.hidden),
            "notAllowed": list(self.not_allowed),
            "problems": dict(self.problems),
            "folders": dict(self.folders),
            "refused": self.refused,
            "allowed": self.allowed,
        }


async def sync(root: Path, collection: DocsCollection, options: SyncOptions, now: datetime) -> SyncReport:
    """Bring the pages under `root` into the collection.

    Without an allow-list nothing is read from the collection and nothing is written: the report lists the folders. A
    file that cannot be read is reported and its stored page stays; the others are synced.
    """
    tree = await asyncio.to_thread(read_tree, root, options.allow, options.site, options.base_url)
    if not options.allow:
        return SyncReport(options.site, options.dry_run, folders=tree.folders, allowed=False)
    stored = await collection.stored(options.site)
    plan = plan_sync(tree, stored, options.site, prune=options.prune, prune_any=options.prune_any)
    if not (plan.empty or options.dry_run):
        await collection.apply(plan, now)
    return _report(tree, plan, options)


def _report(tree: Tree, plan: SyncPlan, options: SyncOptions) -> SyncReport:
    return SyncReport(
        options.site,
        options.dry_run,
        added=tuple(page.path for page in plan.add),
        changed=tuple(page.path for page in plan.change),
        removed=plan.remove,
        kept=len(plan.keep),
        gone=tuple(path for path in plan.gone if path not in set(plan.remove)),
        hidden=plan.hidden,
        not_allowed=tuple(skip.path for skip in tree.skipped if skip.reason == "not allowed"),
        problems={skip.path: skip.reason for skip in tree.skipped if skip.problem},
        folders=tree.folders,
        refused=plan.refused,
    )
