"""The worker's collections that the brain reads, and the ids of single rows in them (design.md, "Contracts")."""

from typing import Final

LEDGER: Final = "freshness_documents"
CHECKPOINTS: Final = "freshness_checkpoints"
DEAD_LETTERS: Final = "freshness_dead_letters"
STREAM_ID: Final = "stream"
SCAN: Final = "scan/"
"""Before the name of a source: the row of its scan."""
