"""Distances and boxes against brute force: no place within the radius is ever outside the boxes."""

import math
from decimal import Decimal

import pytest
from bson import Decimal128
from hypothesis import given
from hypothesis import strategies as st

from brain.knowledge.domain.geo import EARTH_KM, Box, Point, box_filter, boxes_around, distance_km, point_of

HALF_ROUND = math.pi * EARTH_KM

latitudes = st.floats(-90, 90) | st.sampled_from([-90.0, 90.0, 0.0, 89.9999, -89.9999])
longitudes = st.floats(-180, 180) | st.sampled_from([-180.0, 180.0, 179.9999, -179.9999, 0.0])
points = st.builds(Point, latitudes, longitudes)
radii = st.floats(0.001, 500) | st.floats(500, HALF_ROUND)


def by_vectors(one: Point, other: Point) -> float:
    """The same distance by another way: the angle between two unit vectors."""

    def vector(point: Point) -> tuple[float, float, float]:
        phi, lam = math.radians(point.latitude), math.radians(point.longitude)
        return math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)

    (a, b, c), (x, y, z) = vector(one), vector(other)
    cross = math.hypot(b * z - c * y, c * x - a * z, a * y - b * x)
    return EARTH_KM * math.atan2(cross, a * x + b * y + c * z)


def moved(start: Point, bearing: float, km: float) -> Point:
    """The place that lies so many kilometres away in a direction (radians): the direct problem on a sphere."""
    phi, lam, angle = math.radians(start.latitude), math.radians(start.longitude), km / EARTH_KM
    north = math.asin(
        max(-1.0, min(1.0, math.sin(phi) * math.cos(angle) + math.cos(phi) * math.sin(angle) * math.cos(bearing)))
    )
    east = lam + math.atan2(
        math.sin(bearing) * math.sin(angle) * math.cos(phi), math.cos(angle) - math.sin(phi) * math.sin(north)
    )
    degrees = (math.degrees(east) + 180) % 360 - 180
    return Point(math.degrees(north), degrees)


@given(points, points)
def test_distance_agrees_with_vectors(one: Point, other: Point) -> None:
    """Two formulas, one answer, to a centimetre (a metre at the antipodes, where haversine is at its weakest)."""
    expected = by_vectors(one, other)
    tolerance = 1e-5 if expected < 0.99 * HALF_ROUND else 1.0
    assert distance_km(one, other) == pytest.approx(expected, abs=tolerance)
    assert distance_km(one, other) == distance_km(other, one)


@given(points, radii, points)
def test_no_place_within_the_radius_is_outside_the_boxes(centre: Point, radius: float, place: Point) -> None:
    """Brute force over places anywhere."""
    if distance_km(centre, place) <= radius:
        assert any(place in box for box in boxes_around(centre, radius))


@given(points, st.floats(0.001, 2000), st.floats(0, 2 * math.pi), st.floats(0, 1))
def test_places_around_are_in_the_boxes(centre: Point, radius: float, bearing: float, share: float) -> None:
    """Likewise for places that were made to lie within, up to the border itself."""
    place = moved(centre, bearing, radius * share * (1 - 1e-9))
    assert any(place in box for box in boxes_around(centre, radius))


@given(points, radii)
def test_boxes_stay_on_the_globe_and_apart(centre: Point, radius: float) -> None:
    """Each box is a range that a database can search; two meet at the antimeridian alone."""
    boxes = boxes_around(centre, radius)
    for box in boxes:
        assert -90 <= box.south <= box.north <= 90
        assert -180 <= box.west <= box.east <= 180
    if len(boxes) == 2:
        assert boxes[0].east == 180.0
        assert boxes[1].west == -180.0


@pytest.mark.parametrize("radius", [1.0, 25.0, 200.0])
@pytest.mark.parametrize("latitude", [-80.0, -16.8, 0.0, 45.5, 80.0])
def test_the_box_is_not_much_larger_than_the_circle(latitude: float, radius: float) -> None:
    """A box that held the whole globe would pass the tests above."""
    (box,) = boxes_around(Point(latitude, 20.0), radius)
    assert distance_km(Point(box.south, 20.0), Point(box.north, 20.0)) == pytest.approx(2 * radius, rel=0.001)
    assert distance_km(Point(latitude, box.west), Point(latitude, 20.0)) == pytest.approx(radius, rel=0.2)


def test_both_sides_of_the_antimeridian_are_near_each_other() -> None:
    """Matei (-179.873) and Labasa (179.3645) are neighbours, and a place on the line is met under both its names."""
    labasa, matei = Point(-16.4332, 179.3645), Point(-16.688, -179.873)
    assert distance_km(labasa, matei) == pytest.approx(86.2, abs=0.5)
    for centre, other in ((labasa, matei), (matei, labasa)):
        boxes = boxes_around(centre, 100)
        assert len(boxes) == 2
        assert any(other in box for box in boxes)
        assert all(any(Point(-16.5, line) in box for box in boxes) for line in (180.0, -180.0))


def test_around_a_pole_every_longitude_counts() -> None:
    """Five kilometres beyond the pole is another longitude altogether."""
    (box,) = boxes_around(Point(89.99, 10.0), 50)
    assert (box.north, box.west, box.east) == (90.0, -180.0, 180.0)
    assert Point(89.99, -170.0) in box
    (box,) = boxes_around(Point(-90.0, 0.0), 1)
    assert (box.south, box.west, box.east) == (-90.0, -180.0, 180.0)


def test_known_distances() -> None:
    """Figures to check against a map: a degree of latitude, and half the way round."""
    assert distance_km(Point(0, 0), Point(1, 0)) == pytest.approx(111.195, abs=0.001)
    assert distance_km(Point(0, 0), Point(0, 180)) == pytest.approx(20015.1, abs=0.1)
    assert distance_km(Point(45.5262, -122.6571), Point(45.5262, -122.6571)) == 0.0


@pytest.mark.parametrize(
    ("latitude", "longitude"),
    [
        (None, 1.0),
        ("45.5", 1.0),
        (True, 1.0),
        (math.nan, 1.0),
        (math.inf, 1.0),
        (90.1, 0.0),
        (0.0, -180.5),
        (10**400, 0.0),
        (Decimal128("NaN"), 0.0),
        ([1.0], {}),
    ],
)
def test_odd_values_are_no_place(latitude: object, longitude: object) -> None:
    """Stored values of any type are a place or nothing."""
    assert point_of(latitude, longitude) is None


def test_numbers_of_every_kind_are_a_place() -> None:
    """Integers and decimals are numbers too."""
    assert point_of(45, Decimal128(Decimal("-122.5"))) == Point(45.0, -122.5)


def test_filter_has_inclusive_borders() -> None:
    """The database gets ranges, on whichever fields."""
    assert box_filter(Box(1, 2, 3, 4), "venue.lat", "venue.lng") == {
        "venue.lat": {"$gte": 1, "$lte": 2},
        "venue.lng": {"$gte": 3, "$lte": 4},
    }
