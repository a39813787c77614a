"""The event log behind a change stream.

Every entry has a time of its own, so a place in the log is a time and a fragment. A token is that place in the form of
MongoDB's: the type byte 0x82, the time, and then what only this server reads.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from bson import Timestamp

from tests.support.fake_mongod.store import matches, projected

Row = dict[str, Any]
Place = tuple[int, int, int]
"""Seconds, increment and fragment: everything up to there was told."""

ALL: Final = 255
"""The fragment of a place behind everything of its time."""

_TOKEN: Final = struct.Struct(">BIIB")


@dataclass(frozen=True, slots=True)
class Event:
    """One entry; told in as many fragments as asked for."""

    at: Timestamp
    fields: Mapping[str, Any]
    fragments: int = 1

    def rows(self) -> Sequence[tuple[Place, Row]]:
        """What the stream tells: the whole, or its fragments; only the first of those says what it is about."""
        wall = datetime.fromtimestamp(self.at.time, UTC)
        whole = {"clusterTime": self.at, "wallTime": wall, **self.fields}
        if self.fragments == 1:
            return [((self.at.time, self.at.inc, ALL), whole)]
        rows: list[tuple[Place, Row]] = []
        for number in range(1, self.fragments + 1):
            place = (self.at.time, self.at.inc, number)
            part = whole if number == 1 else {}
            rows.append((place, {**part, "splitEvent": {"fragment": number, "of": self.fragments}}))
        return rows


def token(place: Place) -> Row:
    """The token of a place."""
    return {"_data": _TOKEN.pack(0x82, *place).hex().upper()}


def place_of(row: Mapping[str, Any]) -> Place:
    """The place of a token; raises ValueError when it is none of ours."""
    raw = bytes.fromhex(str(row.get("_data")))
    if len(raw) != _TOKEN.size:
        message = "no token of this server"
        raise ValueError(message)
    return _TOKEN.unpack(raw)[1:]


@dataclass(slots=True)
class Cursor:
    """A change stream that is open on this server."""

    place: Place
    query: Mapping[str, Any]
    projection: Mapping[str, Any]
    ended: bool = False


@dataclass(slots=True)
class History:
    """The log, from `oldest` on."""

    oldest: Timestamp
    events: list[Event] = field(default_factory=list[Event])

    def has(self, place: Place) -> bool:
        """Whether what comes after a place is still known."""
        return (place[0], place[1] + 1) >= (self.oldest.time, self.oldest.inc)

    def after(self, cursor: Cursor, now: Timestamp, limit: int) -> list[Row]:
        """What a cursor has not told yet, and move it to the present; an invalidation ends it there."""
        batch: list[Row] = []
        for place, row, about in self._rows(cursor.place):
            if len(batch) == limit:
                return batch
            cursor.place = place
            if matches(about, cursor.query):
                batch.append({"_id": token(place), **projected(row, cursor.projection)})
                cursor.ended = about.get("operationType") == "invalidate"
            if cursor.ended:
                return batch
        cursor.place = max(cursor.place, (now.time, now.inc, ALL))
        return batch

    def _rows(self, after: Place) -> Iterator[tuple[Place, Row, Row]]:
        """What comes after a place: where, what is told there, and the beginning of that event."""
        for event in list(self.events):
            rows = event.rows()
            yield from ((place, row, rows[0][1]) for place, row in rows if place > after)
