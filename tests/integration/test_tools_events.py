"""Events to come, whatever their dates are stored as."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.tool_world import NOW, ORIGIN, ToolWorld, sample_id


def event(number: int) -> str:
    """The id of a sample event."""
    return sample_id("70", number)


UPCOMING = [2, 5, 1, 8, 3, 12, 4, 7, 6]
"""The sample's dated events to come, the soonest first; 13 follows where its legacy date puts it."""


async def test_the_soonest_first_and_nothing_that_is_over(world: ToolWorld) -> None:
    """Missing, empty, null and text dates; the one without any date is nowhere."""
    found = await world.call("find_events", limit=10)
    expected = await world.database["events"].count_documents({"status": "scheduled"})
    assert [one for one in found.ids if one != event(13)] == [event(number) for number in UPCOMING]
    assert found.data["total"] == expected - 1
    starts = [hit["startAt"] for hit in found.data["results"]]
    assert starts == sorted(starts)
    assert found.cards == ()


async def test_an_event_with_all_its_facts(world: ToolWorld) -> None:
    """Its own time zone, the place, our link, and where to sign up."""
    (hit,) = (await world.call("find_events", sport="bmx", place="berlin")).data["results"]
    assert hit == {
        "id": event(2),
        "title": "Whip Night at Hangar Neun",
        "sports": ["bmx"],
        "when": "2027-02-20 19:00 to 2027-02-20 23:30 (Europe/Berlin)",
        "startAt": "2027-02-20T18:00:00Z",
        "endAt": "2027-02-20T22:30:00Z",
        "venue": "Hangar Neun",
        "city": "Berlin",
        "region": "Berlin",
        "country": "Germany",
        "kinds": ["contest"],
        "level": ["pro", "open"],
        "registration": "open",
        "registrationUrl": "https://events.example.org/hangar-neun-whip-night-2027/register",
        "description": hit["description"],
        "webUrl": f"{ORIGIN}/events/hangar-neun-whip-night-2027",
    }


@pytest.mark.parametrize(
    ("sport", "numbers"),
    [
        ("surf", {4, 6}),
        ("SURFING", {4, 6}),
        ("rollerblade", {8, 12}),
        ("snowboard", {3, 6}),
        ("inline-skating", {8, 12}),
    ],
)
async def test_sports_in_any_spelling_on_both_sides(world: ToolWorld, sport: str, numbers: set[int]) -> None:
    """The rows say "SURFING", "Inline Skating", "Snowboarding"."""
    found = await world.call("find_events", sport=sport, limit=10)
    assert {one for one in found.ids if one != event(13)} == {event(number) for number in numbers}


@pytest.mark.parametrize(
    ("place", "numbers"),
    [
        ("sydney", [12, 6]),
        ("Southern Cross", [12, 6]),
        ("norway", [3]),
        ("Tromsø", [3]),
        ("Tromso", [3]),
        ("Berlin, Germany", [2]),
        ("Berlin, Norway", []),
        ("Seattle, WA", [1]),
        ("Cedar Flats, Seattle, Washington, United States", [1]),
        ("Bristol, UK", [13]),
        ("Bristol, United Kingdom", [13]),
        (".*", []),
        ("(", []),
        (",", []),
    ],
)
async def test_places_are_text_not_patterns(world: ToolWorld, place: str, numbers: list[int]) -> None:
    """Part of a town, country or venue, or several with commas; what would be a regular expression is not one."""
    found = await world.call("find_events", place=place)
    assert found.ids == [event(number) for number in numbers]
    assert ("message" in found.data) == (not numbers)


async def test_near_coordinates(world: ToolWorld) -> None:
    """Within the radius, with the distance; an event without coordinates is near nothing."""
    found = await world.call("find_events", latitude=52.5, longitude=13.4, radius_km=50)
    assert [(hit["id"], hit["distanceKm"]) for hit in found.data["results"]] == [(event(2), 3.0)]
    far = await world.call("find_events", latitude=52.5, longitude=13.4, radius_km=2)
    assert far.ids == []
    world.now = datetime(2026, 1, 1, tzinfo=UTC)
    assert event(14) not in (await world.call("find_events", latitude=30.2672, longitude=-97.7431)).ids


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ({"startAt": NOW, "endAt": NOW}, False),  # over this instant
        ({"startAt": datetime(2026, 11, 1, tzinfo=UTC), "endAt": datetime(2026, 11, 30, 12, 1, tzinfo=UTC)}, True),
        ({"startAt": datetime(2026, 12, 24, tzinfo=UTC)}, True),
        ({"startAt": datetime(2026, 11, 30, 11, 59, tzinfo=UTC), "endAt": None}, False),
        ({"startAt": "2026-11-30T13:00:00+02:00", "endAt": "2026-11-30T13:59:00+02:00"}, False),
        ({"startAt": "2026-11-30T13:00:00+02:00", "endAt": "2026-11-30T14:01:00+02:00"}, True),
        ({"startAt": "2026-11-29T23:00:00-14:00", "endAt": "2026-11-30"}, False),
        ({"startAt": "2026-12-01", "endAt": ""}, True),
        ({"startAt": "soon", "endAt": "later"}, False),
        ({"startAt": {"year": 2027}, "endAt": [1]}, False),
        ({"startAt": 1_900_000_000, "endAt": True}, False),
        ({"startDate": "2027-01-01"}, True),
        ({"startAt": datetime(2027, 1, 1, tzinfo=UTC), "status": "Cancelled"}, False),
        ({"startAt": datetime(2027, 1, 1, tzinfo=UTC), "status": "completed"}, False),
    ],
)
async def test_dates_of_every_kind(world: ToolWorld, row: dict[str, Any], shown: bool) -> None:  # noqa: FBT001 - a table's column
    """Upcoming is an end to come, or without one a start to come."""
    await world.database["events"].delete_many({})
    odd = {"title": 7, "sports": {"a": 1}, "venue": "hall", "level": None, "timezone": "Mars/Olympus", "timeTba": True}
    added = (await world.database["events"].insert_one({**odd, **row})).inserted_id
    found = await world.call("find_events")
    assert found.ids == ([str(added)] if shown else [])


async def test_bad_arguments(world: ToolWorld) -> None:
    """Half a place, no words, an unknown name."""
    bad: list[dict[str, Any]] = [{"latitude": 1}, {"place": " "}, {"limit": 0}, {"when": "soon"}, {"radius_km": 1e9}]
    for arguments in bad:
        assert (await world.call("find_events", **arguments)).code == "invalid_arguments"
