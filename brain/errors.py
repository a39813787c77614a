"""Which error leads to which exit code of the brain's commands; how a tool fails, and what a model is told of it.

Beside the tree of `brain.knowledge.errors`, since they end in an answer and never in an exit code:

    Exception
    ├── ToolFailure         what a handler raises; the registry tells the model
    ├── results.TooLarge    a result that is too long even when shortened; the registry makes a ToolFailure of it
    └── ValueError
        └── schema.Unfit    a tool that some consumer cannot take: a bug, found by the tests before anybody starts
"""

from typing import Final, Literal

from brain.knowledge.errors import (
    EXIT_USAGE,
    ConfigurationFault,
    IndexMissing,
    IndexNotReady,
    IndexUnusable,
    KnowledgeError,
    PinMismatch,
    Poison,
    Refused,
    Retryable,
    Throttled,
    Unsupported,
)
from brain.knowledge.errors import exit_code as shared_exit_code


def exit_code(error: KnowledgeError) -> int:
    """The exit code that tells a caller what to do about this error."""
    if isinstance(error, Poison):  # in a one-shot command the input is what was typed
        return EXIT_USAGE
    return shared_exit_code(error)


FailureCode = Literal[
    "invalid_arguments",  # the model can mend it
    "unknown_tool",
    "not_signed_in",
    "no_companion",
    "not_found",
    "forbidden",
    "limit_reached",
    "conflict",
    "index_missing",
    "index_not_ready",
    "pin_mismatch",
    "unavailable",
    "timeout",
    "internal",
]


class ToolFailure(Exception):
    """What a handler raises to tell the model that it did not do it, why, and whether to try again.

    The message is read by a model and may reach a rider: no ids of others, no stack traces, no database words. `fault`
    is the error of ours behind it, for whoever operates this.
    """

    def __init__(
        self, code: FailureCode, message: str, *, retryable: bool = False, fault: KnowledgeError | None = None
    ) -> None:
        super().__init__(message)
        self.code: FailureCode = code
        self.retryable = retryable
        self.fault = fault


_SEARCH_DOWN: Final = "say so, and answer without it"
_FAILURES: Final[tuple[tuple[type[KnowledgeError], FailureCode, str, bool], ...]] = (
    (IndexNotReady, "index_not_ready", f"the knowledge base is being built; {_SEARCH_DOWN}", True),
    (Throttled, "unavailable", f"too much is asked of the search now; {_SEARCH_DOWN}", True),
    (Retryable, "unavailable", f"the database or the search does not answer now; {_SEARCH_DOWN}", True),
    (Poison, "invalid_arguments", "these words cannot be searched for or stored; use other words", False),
    (IndexMissing, "index_missing", f"the knowledge base has no search index; {_SEARCH_DOWN}", False),
    (IndexUnusable, "index_missing", f"the knowledge base's search index is broken; {_SEARCH_DOWN}", False),
    (PinMismatch, "pin_mismatch", f"the search uses another model than the knowledge base; {_SEARCH_DOWN}", False),
    (Refused, "unavailable", f"the database or the search refuses this program; {_SEARCH_DOWN}", False),
    (ConfigurationFault, "unavailable", f"this program is set up wrongly; {_SEARCH_DOWN}", False),
    (Unsupported, "unavailable", f"the database cannot do this; {_SEARCH_DOWN}", False),
)  # fmt: skip
"""The first type that fits decides; a Fatal that is not here is a bug."""


def as_failure(error: KnowledgeError) -> ToolFailure | None:
    """What to tell the model, in words without the operator's settings; None for a bug."""
    for kind, code, message, retryable in _FAILURES:
        if isinstance(error, kind):
            return ToolFailure(code, message, retryable=retryable, fault=error)
    return None
