"""Where changes and documents come from."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from bson import Timestamp

from worker.model import (
    DocKey,
    Position,
    Reading,
    StreamItem,
)


class ChangeStream(Protocol):
    """The tail of the database."""

    async def now(self) -> Timestamp:
        """The operation time of the majority now: a position taken before a scan starts from here."""
        ...

    async def clock(self) -> datetime | None:
        """The wall time of the database's host now, in UTC, or None where it does not say."""
        ...

    async def oldest(self) -> Timestamp | None:
        """The time of the oldest entry of the history, or None where it may not be read."""
        ...

    def follow(self, position: Position) -> AsyncIterator[StreamItem]:
        """Every step after the position, in order, with `Passed()` about once a second while idle.

        Ends by raising: Retryable (reopen from the last position), HistoryLost (the position is gone: rescan),
        WrongTopology or Refused (a person must act). It ends quietly after an invalidation; reopen from the last
        position.
        """
        ...


class Documents(Protocol):
    """The source collections, read only."""

    async def read(self, source: str, ids: Sequence[DocKey], after: Timestamp | None = None) -> Reading:
        """The documents with these ids, majority and causally consistent, as of `after` or later.

        One that cannot be read keeps no other from being read; it is told apart from one that is not there.
        """
        ...

    async def page(self, source: str, after: DocKey | None, limit: int) -> Sequence[DocKey]:
        """The next `limit` ids in the order of `_id` (all types), after the given one."""
        ...

    async def absent(self, source: str, keys: Sequence[DocKey]) -> Sequence[DocKey]:
        """Those of the keys that no document has now."""
        ...

    async def estimate(self, source: str) -> int:
        """About how many documents there are: for progress, not for decisions."""
        ...
