"""Events: what, when, where, for whom. They leave by themselves when they are over.

Upcoming means: `endAt` in the future, or no `endAt` and `startAt` in the future. Dates are
told in the event's own time zone, because an evening in Los Angeles is the next day in UTC.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from brain.knowledge.chunk import Metadata
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.links import event_path
from brain.knowledge.domain.moments import local, zone_named
from brain.knowledge.domain.visibility import event_ends, event_is_called_over
from worker.model import DocKey, Document, Shaped
from worker.sources.parts import listing, paragraphs, parts_of, sports_told
from worker.sources.source import Setting
from worker.sources.split import Block

_MONTHS: Final = "January February March April May June July August September October November December".split()  # noqa: SIM905 - reads better
_REGISTRATION: Final = {
    "open": "open",
    "invite_only": "by invitation only",
    "federation_only": "through the federation only",
}


@dataclass(frozen=True, slots=True)
class Events:
    """The events collection; the daily ingest rewrites every row, its bookkeeping dates are not read."""

    collection: str = "events"
    chunker_version: int = 3

    def neighbours(self, document: Document) -> Sequence[DocKey]:  # noqa: ARG002 - the Source protocol
        """None."""
        return ()

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Visible until `endAt` (else `startAt`) has passed or the status says that it is over."""
        if event_is_called_over(document):
            return Shaped()
        fields = Fields(document)
        expires = event_ends(fields)
        if expires is None or expires <= setting.now:
            return Shaped(oddities=fields.oddities)
        title, description = fields.line("title", "name"), fields.text("description")
        if not (title or description):
            return Shaped(oddities=fields.oddities)
        if not title:
            fields.note("no_title")
        title = title or "An event"
        sport = fields.sport("sports", "sportTypes")
        metadata = Metadata("event", title, sport, event_path(fields))
        blocks = _facts(fields)
        blocks += paragraphs(description)
        parts = parts_of(f"{title} (event)", blocks, metadata, setting, fields)
        return Shaped(tuple(parts), expires_at=expires, oddities=fields.oddities)


def _facts(fields: Fields) -> list[Block]:
    """What a rider asks for, one fact a line."""
    venue = fields.child("venue")
    place = [venue.line("name"), *(venue.line(part) or fields.line(part) for part in ("city", "region", "country"))]
    registration = fields.child("participation").raw("registrationStatus")
    told = _REGISTRATION.get(registration) if isinstance(registration, str) else None
    organizer = fields.child("organizer").line("name")
    return [
        *listing("When", [_when(fields)]),
        *listing("Where", list(dict.fromkeys(filter(None, place)))),
        *sports_told(fields.sports("sports") or fields.sports("sportTypes")),
        *listing("Disciplines", fields.lines("disciplines")),
        *listing("Kind", fields.lines("eventKinds") or fields.lines("eventType")),
        *listing("Level", fields.lines("level")),
        *listing("Registration", [told] if told else []),
        *listing("Organizer", [organizer] if organizer else []),
    ]


def _when(fields: Fields) -> str:
    """The dates, with the time of day unless that is to be announced."""
    start, end = fields.date("startAt", "startDate"), fields.date("endAt")
    zone = zone_named(fields.raw("timezone"))
    timed = fields.raw("timeTba") is not True
    first, last = (_told(moment, zone, timed=timed) for moment in (start, end))
    if first and last and first != last:
        return f"{first} to {last}"
    return first or (f"until {last}" if last else "")


def _told(moment: datetime | None, zone: tzinfo, *, timed: bool) -> str:
    """A moment such as "15 May 2027, 17:00 (UTC)", in English whatever the locale."""
    if moment is None:
        return ""
    there = local(moment, zone, timed=timed)
    day = f"{there.day} {_MONTHS[there.month - 1]} {there.year}"
    return f"{day}, {there:%H:%M} ({there.tzinfo})" if timed else day
