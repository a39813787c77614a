"""Exit codes of the brain's commands, and which error leads to which (design.md, "Commands")."""

from typing import Final

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
