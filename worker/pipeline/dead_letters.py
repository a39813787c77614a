"""Dead letters: a document that can never be processed as it is steps aside, and its neighbours go on.

A letter names the document, the version and a digest of what was wrong, never the content; a newer version that works
clears it.
"""

import hashlib
from typing import Final

from bson import Timestamp

from worker.errors import Poison
from worker.model import DeadLetter, DocKey, Leadership
from worker.pipeline.around import Around
from worker.ports import DeadLetters

_LONGEST_DETAIL: Final = 300  # characters


class Undertaker:
    """Buries documents under one leadership."""

    def __init__(self, letters: DeadLetters, leadership: Leadership, around: Around) -> None:
        self._letters = letters
        self._leadership = leadership
        self._around = around

    async def bury(self, key: DocKey, version: Timestamp, error: Poison, old: DeadLetter | None) -> None:
        """Store the letter; durable when it returns. It counts on from an older letter of the same document."""
        now = self._around.clock.now()
        letter = DeadLetter(
            key=key,
            version=version,
            reason=type(error).__name__,
            detail=_detail(str(error)),
            tries=old.tries + 1 if old is not None else 1,
            first_at=old.first_at if old is not None else now,
            last_at=now,
        )
        await self._around.persist("database", lambda: self._letters.put(letter, self._leadership))


def _detail(message: str) -> str:
    if len(message) <= _LONGEST_DETAIL:
        return message
    digest = hashlib.sha256(message.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{message[:_LONGEST_DETAIL]}… (sha256 {digest})"
