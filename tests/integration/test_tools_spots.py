"""Spots near a place, and one spot with its lore, over the sample data and rows that are odd in every field."""

import math
from typing import Any

import pytest
from bson import ObjectId

from tests.support.tool_world import JUNO, MIKA, ORIGIN, PRIYA, TANE, ToolWorld, sample_id

SEATTLE: dict[str, object] = {"latitude": 47.61, "longitude": -122.34}


def spot(number: int) -> str:
    """The id of a sample spot."""
    return sample_id("30", number)


async def test_near_a_town(world: ToolWorld) -> None:
    """Every field of a hit, as the shipped search gives it, and how far it is; a card for it."""
    found = await world.call("spots_near_me", **SEATTLE)
    (hit,) = found.data["results"]
    assert hit.pop("description").startswith("A modern plaza")
    assert hit == {
        "id": spot(3),
        "name": "Cedar Flats Skate Plaza",
        "city": "Seattle",
        "state": "Washington",
        "country": "USA",
        "category": "park",
        "sportTypes": ["skateboarding", "scooter", "rollerblading", "bmx"],
        "rating": 4.7,
        "reviewCount": 3,
        "distanceKm": 1.36,
        "webUrl": f"{ORIGIN}/spots/washington/cedar-flats-skate-plaza?id={spot(3)}",
    }
    assert [(card.type, card.data["_id"], card.data["rating"]) for card in found.cards] == [("spot_card", spot(3), 4.7)]
    assert found.cards[0].data["imageUrl"] == "https://images.example.com/spots/3.jpg"
    assert "images.example.com" not in found.text


async def test_pending_spots_are_their_owners_alone(world: ToolWorld) -> None:
    """The warehouse in Seattle waits for approval: its owner sees it, marked; strangers and nobody do not."""
    mine = await world.call("spots_near_me", MIKA, **SEATTLE)
    assert mine.ids == [spot(24), spot(3)]
    assert [hit.get("onlyYours") for hit in mine.data["results"]] == [True, None]
    for stranger in (JUNO, None):
        assert (await world.call("spots_near_me", stranger, **SEATTLE)).ids == [spot(3)]


@pytest.mark.parametrize("longitude", [179.99, -179.99, 180, -180])
async def test_across_the_antimeridian(world: ToolWorld, longitude: float) -> None:
    """Fiji lies on both sides of the line; each of its spots is found from either side, the nearest first."""
    found = await world.call("spots_near_me", latitude=-16.7, longitude=longitude, radius_km=100)
    assert found.ids == [spot(18), spot(17), spot(15), spot(16)]
    distances = [hit["distanceKm"] for hit in found.data["results"]]
    assert distances == sorted(distances)


@pytest.mark.parametrize("pole", [90, -90])
async def test_around_a_pole(world: ToolWorld, pole: int) -> None:
    """A spot just across the pole is near, on whatever longitude."""
    place = {"latitude": pole * 0.999, "longitude": -170.0, "approvalStatus": "approved", "name": "Ice"}
    added = (await world.database["spots"].insert_one(dict(place))).inserted_id
    found = await world.call("spots_near_me", latitude=pole * 0.999, longitude=10.0, radius_km=50)
    assert found.ids == [str(added)]
    assert found.data["results"][0]["distanceKm"] == pytest.approx(20.02, abs=0.01)


async def test_the_radius_is_a_border(world: ToolWorld) -> None:
    """Portland is 234.06 km from Seattle's plaza: in at 234.1, out at 234; beyond 500 nothing may be asked."""
    place: dict[str, object] = {"latitude": 47.6205, "longitude": -122.3493}
    assert (await world.call("spots_near_me", **place, radius_km=234.1)).ids == [spot(3), spot(1)]
    assert (await world.call("spots_near_me", **place, radius_km=234)).ids == [spot(3)]
    for radius in (0, -1, 501):
        assert (await world.call("spots_near_me", **place, radius_km=radius)).code == "invalid_arguments"


async def test_the_nearest_are_found_among_many(world: ToolWorld) -> None:
    """The rings stop early, and lose nothing that is nearer: the same as sorting all by distance."""
    places = [(10 + (at % 40) * 0.013, 20 + at * 0.0007) for at in range(600)]
    rows = [{"approvalStatus": "approved", "latitude": north, "longitude": east} for north, east in places]
    ids = (await world.database["spots"].insert_many(rows)).inserted_ids
    by_distance = sorted(
        (math.hypot(north - 10.2, (east - 20.2) * 0.984), at) for at, (north, east) in enumerate(places)
    )
    found = await world.call("spots_near_me", latitude=10.2, longitude=20.2, radius_km=300, limit=10)
    assert found.ids == [str(ids[at]) for _, at in by_distance[:10]]


async def test_sport_words_in_any_spelling(world: ToolWorld) -> None:
    """A synonym finds the canonical key; a word that is no sport filters nothing; spots know no longboarding."""
    fiji: dict[str, object] = {"latitude": -16.7, "longitude": 179.99, "radius_km": 100}
    assert (await world.call("spots_near_me", **fiji, sport="Surf")).ids == [spot(16)]
    assert (await world.call("spots_near_me", **fiji, sport="skate")).ids == [spot(18), spot(15)]
    assert len((await world.call("spots_near_me", **fiji, sport="flatground")).ids) == 4
    assert (await world.call("spots_near_me", **fiji, sport="longboard")).ids == [spot(18), spot(15)]


async def test_without_a_place_the_home_spot(world: ToolWorld) -> None:
    """Mika has one; Juno has none, nobody has none, and another rider's private spot is no home."""
    found = await world.call("spots_near_me", MIKA)
    assert (found.ids, found.data["around"]) == ([spot(1)], "Burnside Yard Bowls")
    await world.database["users"].update_one({"_id": ObjectId(PRIYA)}, {"$set": {"riderProfile.homeSpot": spot(23)}})
    for rider in (JUNO, PRIYA, None):
        assert (await world.call("spots_near_me", rider)).code == "invalid_arguments"


@pytest.mark.parametrize(
    "arguments",
    [
        {"latitude": 47.0},
        {"longitude": 8.0},
        {"latitude": 91, "longitude": 0},
        {"latitude": 0, "longitude": -181},
        {"latitude": "here", "longitude": 0},
        {"latitude": {"$gt": ""}, "longitude": 0},
        {"latitude": 0, "longitude": 0, "limit": 11},
        {"latitude": 0, "longitude": 0, "user_id": MIKA},
    ],
)
async def test_bad_places_are_refused(world: ToolWorld, arguments: dict[str, object]) -> None:
    """Half a place, off the globe, no number, an operator, another rider's id."""
    assert (await world.call("spots_near_me", **arguments)).code == "invalid_arguments"


ODD: list[dict[str, Any]] = [
    {"name": None, "latitude": 47.61, "longitude": -122.34},
    {"name": {"text": "Nested"}, "latitude": 47.61, "longitude": -122.34, "rating": "five", "sportTypes": None},
    {"name": "Inf", "latitude": 47.61, "longitude": -122.34, "rating": float("inf"), "reviewCount": -3, "tags": 7},
    {"name": "Text", "latitude": "47.61", "longitude": "-122.34"},
    {"name": "NaN", "latitude": float("nan"), "longitude": -122.34},
    {"name": ["a", 1], "latitude": 47.61, "longitude": -122.34, "imageURL": 7, "city": {}, "description": ["x"] * 99},
]


async def test_odd_spots_break_no_answer(world: ToolWorld) -> None:
    """Those with a place are found, without what cannot be read; the others are nowhere."""
    ids = (
        await world.database["spots"].insert_many([{**odd, "approvalStatus": "approved"} for odd in ODD])
    ).inserted_ids
    found = await world.call("spots_near_me", **SEATTLE, limit=10)
    assert set(found.ids) == {spot(3), *(str(ids[at]) for at in (0, 1, 2, 5))}
    assert all(
        "rating" not in hit and "reviewCount" not in hit for hit in found.data["results"] if hit["id"] != spot(3)
    )
    for at in range(len(ODD)):
        told = await world.call("spot_details", spot_id=str(ids[at]))
        assert told.data["id"] == str(ids[at])
        assert told.data["reviews"] == []


async def test_rating_zero_is_a_rating_and_none_is_none(world: ToolWorld) -> None:
    """Spot 26 has 0, spot 5 has null; neither is the other."""
    assert (await world.call("spot_details", spot_id=spot(26))).data["rating"] == 0.0
    assert "rating" not in (await world.call("spot_details", spot_id=spot(5))).data


async def test_details_with_reviews_and_history(world: ToolWorld) -> None:
    """The most helpful review first; who did which trick; no user ids, no addresses of strangers' videos."""
    told = await world.call("spot_details", spot_id=spot(2))
    assert told.data["features"] == ["ledges", "manual pad", "marble", "downtown"]
    assert [(one["rating"], one["helpful"], one["visited"]) for one in told.data["reviews"]] == [(4.0, 3, "2026-04-20")]
    assert told.data["tricksDone"] == [
        {
            "trick": "Backside 180 to 50-50",
            "skater": "Nadia Ferreira",
            "year": 2024,
            "source": "film",
            "verified": True,
            "upvotes": 2,
            "story": "Third night, first try of the evening.",
        }
    ]
    assert "videos.example.com" not in told.text
    assert MIKA not in told.text
    assert [card.data["_id"] for card in told.cards] == [spot(2)]
    helpful = [one["helpful"] for one in (await world.call("spot_details", spot_id=spot(3))).data["reviews"]]
    assert helpful == sorted(helpful, reverse=True)
    assert len(helpful) == 3


async def test_deleted_reviews_and_odd_rows(world: ToolWorld) -> None:
    """A deleted review is never told; NaN is no year; rows of wrong types say what they can."""
    deleted = await world.row("spot_reviews", sample_id("76", 16))
    told = await world.call("spot_details", spot_id=deleted["spotId"])
    assert deleted["content"] not in told.text
    await world.database["spot_reviews"].insert_many(
        [
            {
                "spotId": ObjectId(spot(27)),
                "status": "active",
                "rating": "4",
                "content": {"$gt": ""},
                "helpfulCount": "x",
            },
            {"spotId": spot(27), "status": "active", "rating": 9, "content": "y" * 5_000, "visitDate": "last week"},
        ]
    )
    await world.database["spot_trick_history"].insert_one(
        {"spotId": spot(27), "trickName": None, "upvotes": float("nan")}
    )
    told = await world.call("spot_details", spot_id=spot(27))
    assert len(told.data["reviews"]) == 3
    assert max(len(one.get("text", "")) for one in told.data["reviews"]) == 300
    (done,) = told.data["tricksDone"]
    assert done["trick"] == "Wallride"
    assert "year" not in done


@pytest.mark.parametrize("number", [21, 22, 23, 24, 999])
async def test_spots_that_are_not_to_be_seen(world: ToolWorld, number: int) -> None:
    """Pending, rejected, private, none at all: one answer for all, so that nobody learns which."""
    answers = {(await world.call("spot_details", rider, spot_id=spot(number))).text for rider in (TANE, None)}
    assert answers == {(await world.call("spot_details", spot_id=spot(998))).text}
    assert "not_found" in answers.pop()


async def test_the_owner_sees_a_private_spot(world: ToolWorld) -> None:
    """Grandma's driveway is Juno's alone, whether the owner is stored as an ObjectId or as text."""
    for owner in (ObjectId(JUNO), JUNO):
        await world.database["spots"].update_one({"_id": ObjectId(spot(23))}, {"$set": {"userId": owner}})
        assert (await world.call("spot_details", JUNO, spot_id=spot(23))).data["onlyYours"] is True
        assert (await world.call("spot_details", MIKA, spot_id=spot(23))).code == "not_found"
