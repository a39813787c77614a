"""The one tree of errors, shared by both halves.

A caller decides by type alone, never by text:

    KnowledgeError
    ├── Retryable               the same call may succeed later
    │   ├── Unreachable         no answer: refused, reset, timed out, no primary
    │   │   └── NotSent         no connection came about, so nothing was asked (and nothing is charged)
    │   ├── Throttled           429, or 503 with a date: wait `retry_after` seconds, the caller did nothing wrong
    │   ├── Malformed           an answer that is not what the protocol says (HTML, wrong count, wrong width, truncated)
    │   │   ├── WrongWidth      vectors of another width than the pinned model's
    │   │   └── BadVector       a vector that is none: not finite, zeros only, not numbers
    │   └── Unavailable         the other side says it cannot now (5xx, overloaded)
    │       └── IndexNotReady   the vector index is being built, or nothing was indexed yet
    ├── Poison                  this input can never work (400, 413, 422 for one text); others can
    └── Fatal                   nothing will work until a person acts
        ├── ConfigurationFault  a setting is wrong; `mistakes` lists every one
        ├── Refused             the key or role is not accepted (401, 402, 403, code 13)
        ├── PinMismatch         the client's model or width is not the pinned one
        ├── IndexMissing        the vector index does not exist
        ├── IndexUnusable       the vector index failed, or is not defined as the pin wants it
        └── Unsupported         the server cannot do this at all (115: no vector search there)

`worker.errors` adds the worker's own leaves. Messages say what happened, to what, and what to do next, and hold neither
secrets nor document text.

The exit codes of both programs are here too; `brain.errors` and `worker.errors` say which of
their own errors lead to another than `exit_code` says.
"""

from collections.abc import Sequence
from typing import Final

EXIT_OK: Final = 0
EXIT_DIFFERENCES: Final = 1  # ran to the end and found differences or failures
EXIT_USAGE: Final = 64
EXIT_BUG: Final = 70
EXIT_TRY_LATER: Final = 75
EXIT_CONFIGURATION: Final = 78


class KnowledgeError(Exception):
    """The root: anything this project raises on purpose."""


class Retryable(KnowledgeError):
    """The same call may succeed later; `retry_after` is in seconds when the other side named a wait."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unreachable(Retryable):
    """There was no answer."""


class NotSent(Unreachable):
    """No connection came about: the other side knows nothing of this call."""


class Throttled(Retryable):
    """The other side asked us to slow down; it counts as no failure."""


class Malformed(Retryable):
    """The answer is not what the protocol says it is."""


class WrongWidth(Malformed):
    """Vectors of another width than the pinned model's."""


class BadVector(Malformed):
    """One of the vectors is none: the endpoint's fault, or that of one text."""


class Unavailable(Retryable):
    """The other side answered that it cannot serve now."""


class IndexNotReady(Unavailable):
    """There is nothing to search in yet: wait."""


class Poison(KnowledgeError):
    """An input that can never work; its neighbours can."""


class Fatal(KnowledgeError):
    """Nothing will work until a person acts."""


class ConfigurationFault(Fatal):
    """One or more settings are wrong; every mistake is listed."""

    def __init__(self, mistakes: Sequence[str] | str) -> None:
        self.mistakes = (mistakes,) if isinstance(mistakes, str) else tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class Refused(Fatal):
    """The key, the credit or the role is not accepted."""


class PinMismatch(Fatal):
    """The client's model or width is not the pinned one: its vectors must not meet the stored ones."""


class IndexMissing(Fatal):
    """The vector index does not exist."""


class IndexUnusable(Fatal):
    """The vector index is there and will never answer rightly: it failed, or is defined otherwise than the pin says."""


class Unsupported(Fatal):
    """The server does not know this command or stage: it has no vector search, say."""


def exit_code(error: KnowledgeError) -> int:
    """The exit code that tells a caller or a supervisor what to do about this error.

    A plain Fatal is what nobody foresaw (a code of the server that is not in our tables): a bug, and tried again.
    """
    if isinstance(error, Retryable):
        return EXIT_TRY_LATER
    if isinstance(error, Fatal) and type(error) is not Fatal:
        return EXIT_CONFIGURATION
    return EXIT_BUG
