"""The worker's own collections, and the ids of their single rows; some the brain reads too."""

from typing import Final

from brain.knowledge.names import CHECKPOINTS, DEAD_LETTERS, LEDGER, SCAN, STREAM_ID

__all__ = [
    "BUDGET",
    "CHECKPOINTS",
    "DEAD_LETTERS",
    "GAP_ID",
    "LEASES",
    "LEASE_ID",
    "LEDGER",
    "REQUESTS",
    "SCAN",
    "STREAM_ID",
]

LEASES: Final = "freshness_leases"
REQUESTS: Final = "freshness_requests"
BUDGET: Final = "freshness_budget"
LEASE_ID: Final = "worker"
GAP_ID: Final = "gap"
