"""Dead letters: a document that can never be processed as it is steps aside, and its neighbours go on.

A letter names the document, the version and a digest of what was wrong, never the content; a newer version that works
clears it.
"""

import hashlib
import logging
from typing import Final, Protocol

from brain.knowledge.log import log
from worker.errors import Poison
from worker.model import DeadLetter, Delta, Leadership
from worker.pipeline.around import Around
from worker.ports import DeadLetters

_logger = logging.getLogger(__name__)

_LONGEST_DETAIL: Final = 300  # characters


class Failure(Protocol):
    """A document that cannot be published, why, and the SHA-256 of its content, in hex."""

    @property
    def delta(self) -> Delta:
        """Which document, and as of when."""
        ...

    @property
    def error(self) -> Poison:
        """Why."""
        ...

    @property
    def digest(self) -> str:
        """Of its content."""
        ...


class Undertaker:
    """Buries documents under one leadership."""

    def __init__(self, letters: DeadLetters, leadership: Leadership, around: Around) -> None:
        self._letters = letters
        self._leadership = leadership
        self._around = around

    async def bury(self, failure: Failure, old: DeadLetter | None) -> None:
        """Store the letter; durable when it returns. It counts on from an older letter of the same content."""
        now = self._around.clock.now()
        again = old if old is not None and old.digest == failure.digest else None
        letter = DeadLetter(
            key=failure.delta.key,
            version=failure.delta.version,
            digest=failure.digest,
            reason=type(failure.error).__name__,
            detail=_detail(str(failure.error)),
            tries=again.tries + 1 if again is not None else 1,
            first_at=again.first_at if again is not None else now,
            last_at=now,
        )
        await self._around.persist("database", lambda: self._letters.put(letter, self._leadership))
        message = f"{letter.key} cannot be processed as it is: {letter.detail}"
        log(_logger, logging.WARNING, "dead_lettered", message, source=letter.key.source, reason=letter.reason)


def _detail(message: str) -> str:
    if len(message) <= _LONGEST_DETAIL:
        return message
    digest = hashlib.sha256(message.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{message[:_LONGEST_DETAIL]}… (sha256 {digest})"
