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
    ├── WrongTopology       a server without change streams (standalone)
    ├── ForeignState        a checkpoint of a newer version or of another database
    ├── PinRefused          a change of the generations that may not be made as things stand
    └── LeaseHeld           another live process leads and this command cannot work beside it
    ScanVoid, ScanPostponed the flow of scans alone (`pipeline.scan_book`): one that counts no longer, or must wait

Outside of the tree is `docs_sync.page.UnreadablePage`: one page's, which the report of the sync names.

Exit codes (design.md): 0 done, 1 ran to the end and found differences, 64 usage, 70 bug, 75 try again later,
78 configuration.
"""

from typing import Final

from brain.knowledge.errors import (
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
    "LeaseHeld",
    "Malformed",
    "NotSent",
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

EXIT_OK: Final = 0
EXIT_DIFFERENCES: Final = 1
EXIT_USAGE: Final = 64
EXIT_BUG: Final = 70
EXIT_TRY_LATER: Final = 75
EXIT_CONFIGURATION: Final = 78


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
    """The stored position is no longer in the database's history."""


class FencedOff(Fatal):
    """Another process holds the lease: what this one would write is refused."""


class WrongTopology(Fatal):
    """The server cannot serve change streams."""


class ForeignState(Fatal):
    """A checkpoint that this version must not touch."""


class PinRefused(Fatal):
    """A change of the generations that may not be made as things stand."""


class LeaseHeld(Fatal):
    """Another live process leads."""


def exit_code(error: KnowledgeError) -> int:
    """The exit code that tells a supervisor what to do about this error.

    A plain Fatal is what nobody foresaw (a code of the server that is not in our tables): a bug, and tried again.
    """
    if isinstance(error, PinRefused):
        return EXIT_DIFFERENCES
    if isinstance(error, Retryable | LeaseHeld | FencedOff | BudgetSpent):
        return EXIT_TRY_LATER
    if isinstance(error, Fatal) and type(error) is not Fatal:
        return EXIT_CONFIGURATION
    return EXIT_BUG
