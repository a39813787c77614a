"""The one tree of errors, shared by both halves.

A caller decides by type alone, never by text:

    KnowledgeError
    ├── Retryable               the same call may succeed later
    │   ├── Unreachable         no answer: refused, reset, timed out, no primary
    │   ├── Throttled           429, or 503 with a date: wait `retry_after` seconds, the caller did nothing wrong
    │   ├── Malformed           an answer that is not what the protocol says (HTML, wrong count, wrong width, truncated)
    │   └── Unavailable         the other side says it cannot now (5xx, overloaded, index not ready)
    ├── Poison                  this input can never work (400, 413, 422 for one text); others can
    └── Fatal                   nothing will work until a person acts
        ├── ConfigurationFault  a setting is wrong; `mistakes` lists every one
        ├── Refused             the key or role is not accepted (401, 402, 403, code 13)
        ├── PinMismatch         the client's model or width is not the pinned one
        └── IndexMissing        the vector index does not exist

`worker.errors` adds the worker's own leaves. Messages say what happened, to what, and what to do next, and hold neither
secrets nor document text.
"""

from collections.abc import Sequence


class KnowledgeError(Exception):
    """The root: anything this project raises on purpose."""


class Retryable(KnowledgeError):
    """The same call may succeed later; `retry_after` is in seconds when the other side named a wait."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unreachable(Retryable):
    """There was no answer."""


class Throttled(Retryable):
    """The other side asked us to slow down; it counts as no failure."""


class Malformed(Retryable):
    """The answer is not what the protocol says it is."""


class Unavailable(Retryable):
    """The other side answered that it cannot serve now."""


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
