"""Spots near a place: boxes in the query, distances computed here."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bson import ObjectId
from pydantic import Field

from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.geo import Box, Point, boxes_around, distance_km, point_of
from brain.knowledge.domain.ids import both_forms, object_id
from brain.knowledge.domain.visibility import APPROVED_SPOTS, spot_is_public
from brain.knowledge.sports import filed_under, ignored_sport, known_sport
from brain.tool import AnyTool, Coordinates, Result, Tool, ToolContext, Words, remarks
from brain.trickbook.spots import SPOT_FIELDS, SpotFound, sees_spot, spot_cards, spot_facts

DEFAULT_KM: Final = 25.0
MOST_KM: Final = 500.0
MOST_SPOTS: Final = 10
_FIRST_RING_KM: Final = 2.0
_GROWTH: Final = 5.0
_MOST_ROWS: Final = 2_000  # of one box; a town has dozens
_MOST_OWN: Final = 500


class SpotsNearMe(Coordinates):
    """Where, how far, what for; without coordinates around the rider's home spot."""

    radius_km: float | None = Field(default=None, gt=0, le=MOST_KM, description="25 when left out, at most 500")
    sport: Words | None = Field(default=None, description="such as skateboarding")
    limit: int | None = Field(default=None, ge=1, le=MOST_SPOTS, description="5 when left out, at most 10")


class SpotNearby(SpotFound):
    """A spot and how far it is, as the crow flies."""

    distance_km: float


class SpotsFound(Result):
    """The nearest first."""

    results: list[SpotNearby]
    total: int
    radius_km: float
    around: str | None = None
    message: str | None = None


async def spots_near_me(context: ToolContext, arguments: SpotsNearMe) -> SpotsFound:
    """The approved spots within the radius, and the rider's own. Raises ToolFailure (`invalid_arguments`)."""
    around = None
    centre = point_of(arguments.latitude, arguments.longitude)
    if centre is None:
        centre, around = await _home(context)
    radius, limit = arguments.radius_km or DEFAULT_KM, arguments.limit or 5
    found = await _nearest(context, centre, radius, known_sport(arguments.sport), limit)
    nothing = None if found else f"TrickBook has no such spot within {radius:g} km; say so if you suggest others"
    return SpotsFound(
        results=[
            SpotNearby.model_validate({**spot_facts(row, context.origin), "distance_km": round(km, 2)})
            for km, row in found
        ],
        total=len(found),
        radius_km=radius,
        around=around,
        message=remarks(ignored_sport(arguments.sport), nothing),
    )


async def _home(context: ToolContext) -> tuple[Point, str]:
    """The rider's home spot and its name."""
    user = None
    if context.user_id is not None:
        user = await context.database["users"].find_one(
            {"_id": ObjectId(context.user_id)}, {"riderProfile.homeSpot": 1}, session=context.session
        )
    spot_id = object_id(Fields(user or {}).child("riderProfile").raw("homeSpot"))
    row = None
    if spot_id is not None:
        row = await context.database["spots"].find_one({"_id": spot_id}, SPOT_FIELDS, session=context.session)
    point = point_of(row.get("latitude"), row.get("longitude")) if row and sees_spot(context, row) else None
    if row is None or point is None:
        raise ToolFailure(
            code="invalid_arguments",
            message="latitude and longitude are missing and the rider has no home spot: ask where they are",
        )
    return point, Fields(row).line("name") or "the home spot"


async def _nearest(
    context: ToolContext, centre: Point, radius: float, sport: str | None, limit: int
) -> list[tuple[float, Row]]:
    """The nearest spots: in growing rings, so that a crowded place is not read whole for its five nearest."""
    own = await _own(context, sport)
    found: list[tuple[float, Row]] = []
    for ring in _rings(radius):
        rows = [*own]
        for box in boxes_around(centre, ring):
            rows += await _approved(context, box, sport)
        found = []
        for row in rows:
            place = point_of(row.get("latitude"), row.get("longitude"))
            if place is not None and sees_spot(context, row) and (km := distance_km(centre, place)) <= ring:
                found.append((km, row))
        if len(found) >= limit:
            break
    return sorted(found, key=lambda one: (one[0], str(one[1]["_id"])))[:limit]


def _rings(radius: float) -> Iterator[float]:
    """Growing radii, the last one the whole radius."""
    ring = _FIRST_RING_KM
    while ring < radius:
        yield ring
        ring *= _GROWTH
    yield radius


async def _approved(context: ToolContext, box: Box, sport: str | None) -> list[Row]:
    """The approved spots in a box, by the backend's index on `approvalStatus`, `latitude`, `longitude`.

    MongoDB joins the two stages into one filter and uses all three keys; the embedded server uses two, those of the
    first stage.
    """
    rest: Mapping[str, Any] = {"longitude": {"$gte": box.west, "$lte": box.east}}
    pipeline: list[Mapping[str, Any]] = [
        {"$match": {**APPROVED_SPOTS, "latitude": {"$gte": box.south, "$lte": box.north}}},
        {"$match": rest if sport is None else {**rest, "sportTypes": {"$in": filed_under(sport)}}},
        {"$limit": _MOST_ROWS},
        {"$project": SPOT_FIELDS},
    ]
    cursor = await context.database["spots"].aggregate(pipeline, session=context.session)
    return await cursor.to_list()


async def _own(context: ToolContext, sport: str | None) -> list[Row]:
    """The rider's own spots that are not approved."""
    if context.user_id is None:
        return []
    rows = context.database["spots"].find(
        {"userId": {"$in": both_forms(context.user_id)}}, SPOT_FIELDS, session=context.session
    )
    return [
        row
        for row in await rows.limit(_MOST_OWN).to_list()
        if not spot_is_public(row)
        and (sport is None or not set(filed_under(sport)).isdisjoint(Fields(row).sports("sportTypes")))
    ]


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="spots_near_me",
        description="Spots near a place given as latitude and longitude, nearest first; without it near the home spot.",
        arguments=SpotsNearMe,
        result=SpotsFound,
        handler=spots_near_me,
        cards=lambda found: spot_cards(found.results),
    ),
)
