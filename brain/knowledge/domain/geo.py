"""Distances on the globe, and the boxes that a database can search for points within one.

Spots keep `latitude` and `longitude` as plain numbers, without a geospatial index, so "near" is a bounding box in the
query and a distance computed here.

Sources: the haversine formula after R. W. Sinnott, "Virtues of the Haversine", Sky and Telescope 68(2), 1984, p. 159;
the box after J. P. Matuschek, "Finding Points Within a Distance of a Latitude/Longitude Using Bounding Coordinates";
the mean radius is the IUGG's (2a + b) / 3 of WGS 84.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from brain.knowledge.domain.numbers import number

EARTH_KM: Final = 6371.0088
"""Mean radius of the earth in kilometres. A sphere of it is at most 0.6 % off the ellipsoid."""
_SLACK: Final = 1e-9  # radians, about 6 mm: rounding must not cut off a point that lies exactly on the border


@dataclass(frozen=True, slots=True)
class Point:
    """A place: degrees north (-90 to 90) and east (-180 to 180)."""

    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True)
class Box:
    """A range of degrees, borders included; never across the antimeridian."""

    south: float
    north: float
    west: float
    east: float

    def __contains__(self, point: Point) -> bool:
        return self.south <= point.latitude <= self.north and self.west <= point.longitude <= self.east


def point_of(latitude: object, longitude: object) -> Point | None:
    """The place that two stored values name, or None: they may be of any type, infinite, or off the globe."""
    north, east = number(latitude), number(longitude)
    if north is None or east is None or abs(north) > 90 or abs(east) > 180:  # noqa: PLR2004 - degrees of the globe
        return None
    return Point(float(north), float(east))


def distance_km(one: Point, other: Point) -> float:
    """The length of the great circle between two places, in kilometres."""
    phi, psi = math.radians(one.latitude), math.radians(other.latitude)
    across = math.radians(other.longitude - one.longitude)
    square = math.sin((psi - phi) / 2) ** 2 + math.cos(phi) * math.cos(psi) * math.sin(across / 2) ** 2
    return 2 * EARTH_KM * math.asin(math.sqrt(min(1.0, square)))  # rounding may exceed 1 at the antipodes


def boxes_around(centre: Point, radius_km: float) -> tuple[Box, ...]:
    """One or two boxes that together hold every place within the radius, and some beyond it.

    Two when the circle crosses the antimeridian or touches it: 180 and -180 degrees are the same line, and a place on
    it may be stored as either. Around a pole the box spans all longitudes.
    """
    angle = radius_km / EARTH_KM + _SLACK
    latitude = math.radians(centre.latitude)
    south, north = latitude - angle, latitude + angle
    if south <= -math.pi / 2 or north >= math.pi / 2:
        return (Box(max(math.degrees(south), -90.0), min(math.degrees(north), 90.0), -180.0, 180.0),)
    half = math.degrees(math.asin(min(1.0, math.sin(angle) / math.cos(latitude))) + _SLACK)
    west, east = centre.longitude - half, centre.longitude + half
    lower, upper = math.degrees(south), math.degrees(north)
    if west <= -180:  # noqa: PLR2004 - the antimeridian
        return (Box(lower, upper, west + 360, 180.0), Box(lower, upper, -180.0, east))
    if east >= 180:  # noqa: PLR2004 - likewise
        return (Box(lower, upper, west, 180.0), Box(lower, upper, -180.0, east - 360))
    return (Box(lower, upper, west, east),)


def box_filter(box: Box, latitude: str = "latitude", longitude: str = "longitude") -> Mapping[str, object]:
    """The box as a database filter on two fields of numbers."""
    return {latitude: {"$gte": box.south, "$lte": box.north}, longitude: {"$gte": box.west, "$lte": box.east}}
