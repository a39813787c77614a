"""The worker's own leaves of the tree drawn in `brain.knowledge.errors`.

    Retryable
    ├── Conflict            two writers met in the database; the same write may succeed now
    │   └── DuplicateKey    a key is there already: two upserts met, or a unique index allows no second one, ever
    └── GenerationsChanged  the live generations are others than this leader began with: it must begin again
    Poison
    ├── UnreadableDocument  a document that cannot be read or shaped (damage, a bug, a shape nobody knows)
    └── Unstorable          a document whose chunks the database refuses, tried alone too; both are dead-lettered
    Fatal
    ├── BudgetSpent         the day's money for embedding is spent: tomorrow (UTC), or when somebody raises it
    ├── HistoryLost         the stored position is no longer in the database's history: the sources must be rescanned
    ├── FencedOff           another process holds the lease now: this one's writes are refused
    │   └── LeaseGone       nobody holds it: its row is gone, with the database as a rule; it must be taken anew
    ├── WrongTopology       a server without change streams (standalone)
    ├── ForeignState        a checkpoint of a newer version or of another database
    ├── NothingPinned       no generation of chunks lives: the database is new, or was dropped
    ├── PinRefused          a change of the generations that may not be made as things stand
    └── LeaseHeld           another live process leads and this command cannot work beside it
    ScanVoid, ScanPostponed the flow of scans alone (`pipeline.scan_book`): one that counts no longer, or must wait

Outside of the tree is `docs_sync.page.UnreadablePage`: one page's, which the report of the sync names.

Exit codes: 0 done, 1 ran to the end and found differences, 64 usage, 70 bug, 75 try again later,
78 configuration.
"""

from bson import Timestamp

from brain.knowledge.errors import (
    EXIT_BUG,
    EXIT_CONFIGURATION,
    EXIT_DIFFERENCES,
    EXIT_OK,
    EXIT_TRY_LATER,
    EXIT_USAGE,
    BadVector,
    ConfigurationFault,
    Fatal,
    IndexMissing,
    IndexNotReady,
    IndexUnusable,
    KnowledgeError,
    Malformed,
    NotSent,
    PinMismatch,
    Poison,
    Refused,
    Retryable,
    Throttled,
    Unavailable,
    Unreachable,
    Unsupported,
    WrongWidth,
)
from brain.knowledge.errors import exit_code as shared_exit_code

__all__ = [
    "EXIT_BUG",
    "EXIT_CONFIGURATION",
    "EXIT_DIFFERENCES",
    "EXIT_OK",
    "EXIT_TRY_LATER",
    "EXIT_USAGE",
    "BadVector",
    "BudgetSpent",
    "ConfigurationFault",
    "Conflict",
    "DuplicateKey",
    "Fatal",
    "FencedOff",
    "ForeignState",
    "GenerationsChanged",
    "HistoryLost",
    "IndexMissing",
    "IndexNotReady",
    "IndexUnusable",
    "KnowledgeError",
    "LeaseGone",
    "LeaseHeld",
    "Malformed",
    "NotSent",
    "NothingPinned",
    "PinMismatch",
    "PinRefused",
    "Poison",
    "Refused",
    "Retryable",
    "Throttled",
    "Unavailable",
    "Unreachable",
    "UnreadableDocument",
    "Unstorable",
    "Unsupported",
    "WrongTopology",
    "WrongWidth",
    "exit_code",
]


class Conflict(Retryable):
    """Two writers met; the same write may succeed now."""


class GenerationsChanged(Retryable):
    """Other generations live now than this leader began with."""


class DuplicateKey(Conflict):
    """A key is there already; it may pass, and it may be for ever."""


class UnreadableDocument(Poison):
    """A document that cannot be read or shaped."""


class Unstorable(Poison):
    """A document whose chunks the database refuses."""


class BudgetSpent(Fatal):
    """The day's money for embedding is spent."""


class HistoryLost(Fatal):
    """The stored position is no longer in the database's history.

    `since`: where the gap began, when that is before the last step that was told.
    """

    def __init__(self, message: str, *, since: Timestamp | None = None) -> None:
        super().__init__(message)
        self.since = since


class FencedOff(Fatal):
    """Another process holds the lease: what this one would write is refused."""


class LeaseGone(FencedOff):
    """The lease is not there any more, and nobody holds it."""


class NothingPinned(ConfigurationFault):
    """No generation of chunks lives in this database."""


class WrongTopology(Fatal):
    """The server cannot serve change streams."""


class ForeignState(Fatal):
    """A checkpoint that this version must not touch."""


class PinRefused(Fatal):
    """A change of the generations that may not be made as things stand."""


class LeaseHeld(Fatal):
    """Another live process leads."""


def exit_code(error: KnowledgeError) -> int:
    """The exit code that tells a supervisor what to do about this error."""
    if isinstance(error, PinRefused):
        return EXIT_DIFFERENCES
    return EXIT_TRY_LATER if isinstance(error, LeaseHeld | FencedOff | BudgetSpent) else shared_exit_code(error)
