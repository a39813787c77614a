"""What must be written so that the stored pages of a site become those of its tree: a difference of hashes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from worker.docs_sync.page import DocsPage
from worker.docs_sync.tree import Tree

LARGEST_PRUNE_SHARE: Final = 0.3
"""The share of a site's stored pages that one run may remove; more looks like a wrong folder or a wrong allow-list."""
SMALLEST_PRUNE_BOUND: Final = 5
"""Pages that one run may remove from a small site, as long as more than half of it stays; one page always may go."""


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """The difference. `remove` is what will be removed, `gone` what could be; `refused` says why it will not be.

    `hidden` are the paths of drafts and unlisted pages: they are stored, and the worker keeps them out of search.
    """

    site: str
    add: tuple[DocsPage, ...] = ()
    change: tuple[DocsPage, ...] = ()
    keep: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def empty(self) -> bool:
        """Nothing to write."""
        return not (self.add or self.change or self.remove)


def plan_sync(
    tree: Tree, stored: Mapping[str, str], site: str, *, prune: bool = False, prune_any: bool = False
) -> SyncPlan:
    """Compare the tree with the stored hashes by path.

    A page that is there but could not be read, or lies in a folder that could not be, is never removed. `prune_any`
    overrides the bound on removals.
    """
    present = {page.path: page for page in tree.pages}
    unread = [skip.path for skip in tree.skipped if skip.problem]
    gone = tuple(
        path
        for path in sorted(stored)
        if path not in present and not any(path == lost or (lost[-1:] == "/" and _under(path, lost)) for lost in unread)
    )
    refused = _refusal(len(gone), len(stored), empty=not tree.pages) if prune and gone and not prune_any else None
    return SyncPlan(
        site,
        add=tuple(page for path, page in present.items() if path not in stored),
        change=tuple(page for path, page in present.items() if path in stored and stored[path] != page.hash),
        keep=tuple(path for path, page in present.items() if stored.get(path) == page.hash),
        remove=gone if prune and refused is None else (),
        gone=gone,
        hidden=tuple(page.path for page in tree.pages if page.hidden),
        refused=refused,
    )


def _under(path: str, folder: str) -> bool:
    return folder == "./" or path.startswith(folder)


def _refusal(gone: int, stored: int, *, empty: bool) -> str | None:
    """Why so many removals are refused, or None."""
    if empty:
        return "no page was found: this looks like a wrong folder or a wrong allow-list"
    bound = max(1, min(SMALLEST_PRUNE_BOUND, (stored - 1) // 2), stored * LARGEST_PRUNE_SHARE)
    if gone > bound:
        return f"{gone} of {stored} stored pages would go: this looks like a wrong folder or a wrong allow-list"
    return None
