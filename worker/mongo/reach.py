"""How far back the history of the database goes.

Its first entry says so exactly, where `local` may be read. The role that this worker asks for (find and changeStream on
its database) may not; there it is found by trying: MongoDB refuses a stream from a time before its first entry (286).
"""

from typing import Final

from bson import Timestamp

from worker.errors import HistoryLost, KnowledgeError, Retryable
from worker.mongo.driver import Database

FIRST_TRY: Final = 3600
"""Seconds: the headroom below which an alert fires."""

FARTHEST: Final = 30 * 86_400
"""Seconds: beyond, nobody needs to know more."""

FACTOR: Final = 4
FINEST: Final = 60
"""Seconds: the search ends within a tenth of what was found, or within so many."""

AGAIN: Final = 60
"""Seconds between two looks whether what was found still holds."""


async def first_entry(database: Database) -> Timestamp | None:
    """The time of the oldest entry of the history, or None where `local` may not be read."""
    try:
        rows = await database.beside("local").find("oplog.rs", {}, {"ts": 1}, sort=[("$natural", 1)], limit=1)
    except Retryable:
        raise  # not known now: whoever went on without it might go on past a gap
    except KnowledgeError:
        return None
    return rows[0].get("ts") if rows else None


class Reach:
    """Finds by trying how far the history goes back; remembers it, and looks again whether it still does.

    What it finds is never before the first entry, and at most a tenth, or a minute, after it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: int | None = None
        self._looked = 0

    async def oldest(self, now: Timestamp) -> Timestamp:
        """A time from which the history is there, seen from the present; costs a few streams opened and closed."""
        if self._found is None or now.time - self._looked >= AGAIN:
            self._found = await self._find(now.time, self._found)
            self._looked = now.time
        return Timestamp(self._found, 1)

    async def _find(self, now: int, former: int | None) -> int:
        if former is not None and await self._is_there(former):
            return former
        there, gone = now, former
        step = FIRST_TRY
        while gone is None and step < FARTHEST:
            if await self._is_there(now - step):
                there, step = now - step, step * FACTOR
            else:
                gone = now - step
        while gone is not None and there - gone > max(FINEST, (now - there) // 10):
            middle = (there + gone) // 2
            if await self._is_there(middle):
                there = middle
            else:
                gone = middle
        return there

    async def _is_there(self, second: int) -> bool:
        """Whether a stream opens at that second. It ends at its first event: this worker's own writes are not far."""
        try:
            async with self._database.watch(
                [{"$project": {"_id": 1}}], start_at_operation_time=Timestamp(second, 1), batch_size=1
            ):
                return True
        except HistoryLost:
            return False
