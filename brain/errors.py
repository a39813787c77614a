"""Exit codes of the brain's commands and which error leads to which (design.md, "Commands"); how a tool fails."""

from typing import Final, Literal

from brain.knowledge.errors import KnowledgeError, Poison, Retryable

EXIT_OK: Final = 0
EXIT_USAGE: Final = 64
EXIT_BUG: Final = 70
EXIT_TRY_LATER: Final = 75
EXIT_CONFIGURATION: Final = 78


def exit_code(error: KnowledgeError) -> int:
    """The exit code that tells a caller what to do about this error."""
    if isinstance(error, Retryable):
        return EXIT_TRY_LATER
    if isinstance(error, Poison):  # in a one-shot command the input is what was typed
        return EXIT_USAGE
    return EXIT_CONFIGURATION


FailureCode = Literal[
    "invalid_arguments",  # the model can mend it
    "unknown_tool",
    "not_signed_in",
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

    The message is read by a model and may reach a rider: no ids of others, no stack traces, no database words.
    """

    def __init__(self, code: FailureCode, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code: FailureCode = code
        self.retryable = retryable
