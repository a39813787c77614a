"""A Docusaurus folder brought into the docs collection: read (tree), compare (plan), write (sync)."""

from worker.docs_sync.page import DocsPage
from worker.docs_sync.plan import SyncPlan, plan_sync
from worker.docs_sync.sync import DocsCollection, SyncOptions, SyncReport, sync
from worker.docs_sync.tree import Tree, read_tree

__all__ = [
    "DocsCollection",
    "DocsPage",
    "SyncOptions",
    "SyncPlan",
    "SyncReport",
    "Tree",
    "plan_sync",
    "read_tree",
    "sync",
]
