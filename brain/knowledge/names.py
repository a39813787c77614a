"""Names that both halves know, and the backend and operators with them: they stay as they are.

The worker's collections that the brain reads, the ids of single rows in them, and the embedded database's folder.
"""

from pathlib import Path
from typing import Final

DATA: Final = Path("data")
"""Where the embedded database is when no folder is named."""

LEDGER: Final = "freshness_documents"
CHECKPOINTS: Final = "freshness_checkpoints"
DEAD_LETTERS: Final = "freshness_dead_letters"
STREAM_ID: Final = "stream"
SCAN: Final = "scan/"
"""Before the name of a source: the row of its scan."""
