"""Events to come: contests, jams, film nights, by sport and place."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic import Field

from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import cut
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.geo import Point, box_filter, boxes_around, distance_km, point_of
from brain.knowledge.domain.links import event_path
from brain.knowledge.domain.moments import local, zone_named
from brain.knowledge.domain.places import is_in, parts
from brain.knowledge.domain.visibility import event_is_upcoming
from brain.knowledge.sports import canonical_sport, spellings
from brain.tool import AnyTool, Coordinates, Result, Tool, ToolContext, Words
from brain.trickbook.tricks import web_address

DEFAULT_KM: Final = 100.0
MOST_KM: Final = 2_000.0
MOST_EVENTS: Final = 10
_MOST_ROWS: Final = 300  # of each kind of date, the soonest first
_AFTER_ALL_DATES: Final = ":"  # the character after 9: it ends the range of texts in an index
_PLACES: Final = ("venue.name", "venue.city", "venue.region", "venue.country", "city", "region", "country")
_FIELDS: Final = dict.fromkeys(
    [
        *("title", "name", "slug", "sports", "sportTypes", "startAt", "startDate", "endAt", "timezone", "timeTba"),
        *("status", "venue", "city", "region", "country", "eventKinds", "eventType", "level", "description"),
        *("participation.registrationStatus", "participation.registrationUrl"),
    ],
    1,
)


class FindEvents(Coordinates):
    """What for and where; everything may be left out."""

    sport: Words | None = Field(default=None, description="such as skateboarding")
    place: Words | None = Field(default=None, description="town, region, country or venue")
    radius_km: float | None = Field(default=None, gt=0, le=MOST_KM, description="100 when left out")
    limit: int | None = Field(default=None, ge=1, le=MOST_EVENTS, description="5 when left out, at most 10")


class EventFound(Result):
    """An event; `when` is in its own time zone."""

    id: str
    title: str
    sports: list[str]
    when: str
    start_at: datetime | None = None
    end_at: datetime | None = None
    venue: str | None = None
    city: str | None = None
    region: str | None = None
    country: str | None = None
    distance_km: float | None = None
    kinds: list[str]
    level: list[str]
    registration: str | None = None
    registration_url: str | None = None
    description: str | None = None
    web_url: str | None = None


class EventsFound(Result):
    """The soonest first."""

    results: list[EventFound]
    total: int
    message: str | None = None


async def find_events(context: ToolContext, arguments: FindEvents) -> EventsFound:
    """The next events that are not over."""
    now, centre = context.now(), point_of(arguments.latitude, arguments.longitude)
    sport, radius = canonical_sport(arguments.sport), arguments.radius_km or DEFAULT_KM  # events say any word
    wanted = _wanted(sport, arguments.place, centre, radius)
    found: list[tuple[datetime, str, EventFound]] = []
    for row in await _rows(context, now, wanted):
        event = _told(row, context.origin, centre)
        near = centre is None or (event.distance_km is not None and event.distance_km <= radius)
        starts = event.start_at or event.end_at
        if starts and near and event_is_upcoming(row, now) and (sport is None or sport in event.sports):
            found.append((starts, event.id, event))
    results = [event for *_, event in sorted(found, key=lambda one: one[:2])[: arguments.limit or 5]]
    message = None if results else "TrickBook knows no such event to come; say so if you name others"
    return EventsFound(results=results, total=len(results), message=message)


def _wanted(sport: str | None, place: str | None, centre: Point | None, radius: float) -> Mapping[str, Any]:
    """What an event must match besides its date."""
    every: list[Mapping[str, Any]] = []
    if sport is not None:
        words = "|".join(re.escape(word).replace(r"\ ", r"[\s_-]+") for word in spellings(sport))
        condition = {"$regex": rf"^\s*(?:{words})\s*$", "$options": "i"}
        every.append({"$or": [{"sports": condition}, {"sportTypes": condition}]})
    if place is not None:
        every += [is_in(part, _PLACES) for part in parts(place)]
    if centre is not None:
        every.append({"$or": [box_filter(box, "venue.lat", "venue.lng") for box in boxes_around(centre, radius)]})
    return {"$and": every} if every else {}


async def _rows(context: ToolContext, now: datetime, wanted: Mapping[str, Any]) -> list[Row]:
    """What may be to come, by the kinds of dates that the data holds: dates, texts, nothing (null, missing, "").

    Texts are ISO 8601 and compare as such to a day or so, which `event_is_upcoming` settles. An index serves each; all
    are asked at the same time.
    """
    yesterday = (now - timedelta(days=1)).date().isoformat()
    later: Sequence[Mapping[str, Any]] = ({"$gt": now}, {"$gt": yesterday, "$lt": _AFTER_ALL_DATES})
    open_end = [{"endAt": end, "startAt": start} for end in (None, "") for start in (*later, None)]
    dates = (*({"endAt": end} for end in later), *open_end)
    found = await asyncio.gather(*(_soonest(context, first, wanted) for first in dates))
    return [row for rows in found for row in rows]


async def _soonest(context: ToolContext, first: Mapping[str, Any], rest: Mapping[str, Any]) -> list[Row]:
    pipeline: list[Mapping[str, Any]] = [
        {"$match": first},
        {"$match": rest},
        {"$sort": {"startAt": 1, "_id": 1}},
        {"$limit": _MOST_ROWS},
        {"$project": _FIELDS},
    ]
    cursor = await context.database["events"].aggregate(pipeline, session=context.session)
    return await cursor.to_list()


def _told(row: Row, origin: str, centre: Point | None) -> EventFound:
    fields = Fields(row)
    venue, participation, path = fields.child("venue"), fields.child("participation"), event_path(fields)
    start, end = fields.date("startAt", "startDate"), fields.date("endAt")
    place = point_of(venue.raw("lat"), venue.raw("lng"))
    return EventFound(
        id=str(row["_id"]),
        title=cut(fields.line("title", "name"), 150) or "An event",
        sports=(fields.sports("sports") or fields.sports("sportTypes"))[:10],
        when=_when(fields, start, end),
        start_at=start,
        end_at=end,
        venue=venue.label("name"),
        city=venue.label("city") or fields.label("city"),
        region=venue.label("region") or fields.label("region"),
        country=venue.label("country") or fields.label("country"),
        distance_km=round(distance_km(centre, place), 2) if centre and place else None,
        kinds=fields.lines("eventKinds", "eventType")[:10],
        level=fields.lines("level")[:10],
        registration=participation.label("registrationStatus"),
        registration_url=web_address(participation.raw("registrationUrl")),
        description=cut(fields.line("description"), 180),
        web_url=f"{origin}{path}" if path else None,
    )


def _when(fields: Fields, start: datetime | None, end: datetime | None) -> str:
    """Such as "2027-02-20 19:00 to 2027-02-20 23:30 (Europe/Berlin)"; days alone while the time is to be announced."""
    zone, timed = zone_named(fields.raw("timezone")), fields.raw("timeTba") is not True
    form = "%Y-%m-%d %H:%M" if timed else "%Y-%m-%d"
    told = [f"{local(moment, zone, timed=timed):{form}}" for moment in (start, end) if moment is not None]
    return f"{' to '.join(dict.fromkeys(told))} ({zone})" if timed else " to ".join(dict.fromkeys(told))


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="find_events",
        description="Events to come, the soonest first, by sport, by place name, or near coordinates.",
        arguments=FindEvents,
        result=EventsFound,
        handler=find_events,
        links=lambda found: [event.registration_url for event in found.results if event.registration_url],
    ),
)
