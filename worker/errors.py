"""The worker's own leaves of the tree drawn in `brain.knowledge.errors`.

    Retryable
    └── Conflict            two writers met in the database; the same write may succeed now
    Poison
    └── UnreadableDocument  a document that cannot be shaped (a bug or a shape nobody knows); it is dead-lettered
    Fatal
    ├── HistoryLost         the stored position is no longer in the database's history: the sources must be rescanned
    ├── FencedOff           another process holds the lease now: this one's writes are refused
    ├── WrongTopology       a server without change streams (standalone)
    ├── ForeignState        a checkpoint of a newer version or of another database
    └── LeaseHeld           another live process leads and this command cannot work beside it

Exit codes (design.md): 0 done, 1 ran to the end and found differences, 64 usage, 70 bug, 75 try again later,
78 configuration.
"""

from typing import Final

from brain.knowledge.errors import (
    ConfigurationFault,
    Fatal,
    IndexMissing,
    KnowledgeError,
    Malformed,
    PinMismatch,
    Poison,
    Refused,
    Retryable,
    Throttled,
    Unavailable,
    Unreachable,
)

__all__ = [
    "EXIT_BUG",
    "EXIT_CONFIGURATION",
    "EXIT_DIFFERENCES",
    "EXIT_OK",
    "EXIT_TRY_LATER",
    "EXIT_USAGE",
    "ConfigurationFault",
    "Conflict",
    "Fatal",
    "FencedOff",
    "ForeignState",
    "HistoryLost",
    "IndexMissing",
    "KnowledgeError",
    "LeaseHeld",
    "Malformed",
    "PinMismatch",
    "Poison",
    "Refused",
    "Retryable",
    "Throttled",
    "Unavailable",
    "Unreachable",
    "UnreadableDocument",
    "WrongTopology",
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


class UnreadableDocument(Poison):
    """A document that cannot be shaped."""


class HistoryLost(Fatal):
    """The stored position is no longer in the database's history."""


class FencedOff(Fatal):
    """Another process holds the lease: what this one would write is refused."""


class WrongTopology(Fatal):
    """The server cannot serve change streams."""


class ForeignState(Fatal):
    """A checkpoint that this version must not touch."""


class LeaseHeld(Fatal):
    """Another live process leads."""


def exit_code(error: KnowledgeError) -> int:
    """The exit code that tells a supervisor what to do about this error.

    A plain Fatal is what nobody foresaw (a code of the server that is not in our tables): a bug, and tried again.
    """
    if isinstance(error, Retryable | LeaseHeld | FencedOff):
        return EXIT_TRY_LATER
    if isinstance(error, Fatal) and type(error) is not Fatal:
        return EXIT_CONFIGURATION
    return EXIT_BUG
