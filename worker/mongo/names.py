"""The worker's own collections (design.md, "Contracts"), and the ids of their single rows."""

from typing import Final

LEDGER: Final = "freshness_documents"
CHECKPOINTS: Final = "freshness_checkpoints"
LEASES: Final = "freshness_leases"
DEAD_LETTERS: Final = "freshness_dead_letters"
REQUESTS: Final = "freshness_requests"
BUDGET: Final = "freshness_budget"
LEASE_ID: Final = "worker"
STREAM_ID: Final = "stream"
