"""search_spots over the sample, with the traps of old."""

import pytest
from bson import ObjectId

from tests.support.tool_world import JUNO, MIKA, ORIGIN, ToolWorld, sample_id


def spot(number: int) -> str:
    """The id of a sample spot."""
    return sample_id("30", number)


async def test_spots_of_a_state(world: ToolWorld) -> None:
    """The whole state's name, in any case; the best rated first; the keys of the shipped tool; a card."""
    found = await world.call("search_spots", state="oregon")
    assert set(found.data) == {"results", "total", "important"}
    hit = found.data["results"][0]
    assert {"id", "name", "city", "state", "country", "category", "sportTypes", "rating", "description"} <= set(hit)
    assert (hit["id"], hit["state"], hit["rating"]) == (spot(1), "Oregon", 4.5)
    assert len(hit["description"]) <= 150
    assert hit["webUrl"].startswith(f"{ORIGIN}/spots/oregon/")
    assert found.cards[0].type == "spot_card"
    assert (await world.call("search_spots", state="orego")).data["results"] == []


async def test_the_best_rated_first_at_most_five(world: ToolWorld) -> None:
    """Without any words."""
    results = (await world.call("search_spots")).data["results"]
    ratings = [hit["rating"] for hit in results]
    assert len(ratings) == 5
    assert ratings == sorted(ratings, reverse=True)


async def test_a_spot_that_nobody_has_rated_says_0_and_its_card_says_nothing(world: ToolWorld) -> None:
    """Spot 5 has a null rating; older prompts expect a number."""
    row = await world.row("spots", spot(5))
    found = await world.call("search_spots", query=row["name"])
    assert found.data["results"][0]["rating"] == 0
    assert "rating" not in found.cards[0].data


@pytest.mark.parametrize(
    ("query", "number"), [("cedar flats", 3), ("PELICAN street", 2), ("plaza seattle", 3), ("marble los angeles", 2)]
)
async def test_words_of_name_city_and_features(world: ToolWorld, query: str, number: int) -> None:
    """A part of the name, or all words over name, city and tags."""
    assert (await world.call("search_spots", query=query)).ids[0] == spot(number)


async def test_a_spot_of_that_very_name_is_the_answer(world: ToolWorld) -> None:
    """In any case; in another state or sport it is not; one that waits for approval is none."""
    name = "cedar FLATS skate plaza"
    assert (await world.call("search_spots", query=name)).ids == [spot(3)]
    assert (await world.call("search_spots", query=name, state="WASHINGTON", sport="bmx")).ids == [spot(3)]
    assert (await world.call("search_spots", query=name, state="Oregon")).ids == []
    assert (await world.call("search_spots", query=name, sport="surf")).ids == []
    await world.database["spots"].update_one({"_id": ObjectId(spot(3))}, {"$set": {"approvalStatus": "APPROVED"}})
    assert (await world.call("search_spots", query=name, state="washington")).ids == []


@pytest.mark.parametrize("words", ["(", "c++ (switch)", ".*", "[a-z]+", "\\", "^", "$", "|", "(a+)+$"])
async def test_words_are_no_pattern(world: ToolWorld, words: str) -> None:
    """query, state and city were patterns that nobody escaped."""
    for argument in ("query", "state", "city"):
        found = await world.call("search_spots", **{argument: words})
        assert found.error == {}
        assert found.data["results"] == []
        assert "message" in found.data


async def test_only_approved_spots(world: ToolWorld) -> None:
    """Pending, private and rejected ones are shown to nobody here, not even their owners."""
    for number in (21, 22, 23, 24):
        row = await world.row("spots", spot(number))
        for rider in (None, MIKA, JUNO):
            assert spot(number) not in (await world.call("search_spots", rider, query=row["name"])).ids


async def test_the_sport_in_any_spelling(world: ToolWorld) -> None:
    """Such as "surf"; a word that is no sport is ignored, and that is said."""
    found = await world.call("search_spots", sport="surf")
    assert found.data["results"]
    assert all("surfing" in hit["sportTypes"] for hit in found.data["results"])
    assert "notes" in (await world.call("search_spots", sport="flatground")).data
    assert (await world.call("search_spots", sport="longboard")).data["results"]  # filed under skateboarding


async def test_a_part_of_the_city(world: ToolWorld) -> None:
    """As shipped: a substring, in any case."""
    assert spot(3) in (await world.call("search_spots", city="seatt", state="WASHINGTON")).ids


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ({"city": "Seattle, Washington"}, [3]),
        ({"city": "seattle wa"}, []),  # letters without a comma are a state in capitals only
        ({"city": "Seattle WA"}, [3]),
        ({"city": "Portland, OR, USA"}, [1]),
        ({"city": "Portland, Maine"}, []),
        ({"city": "Portland", "state": "OR"}, [1]),
        ({"city": "Boston, Massachusetts, United States"}, [27]),  # which tells no country
        ({"city": "Toronto, Ontario, USA"}, []),
        ({"city": "Tromso, Norway"}, [19]),
        ({"city": ","}, []),
        ({"state": "WA"}, [3]),
        ({"state": "Oregon, USA"}, [1]),
        ({"state": "Setubal"}, [10]),
        ({"query": "Seattle Washington"}, [3]),
        ({"query": "plaza, Seattle, WA"}, [3]),
        ({"query": "Whistler BC"}, [7]),
        ({"query": "Tromso"}, [19]),
        ({"query": "praia do fárol"}, [10]),
        ({"query": "ledges, Los Angeles, United States"}, [2]),
        ({"query": "wall, Boston, USA"}, [27]),
        ({"query": "cable Texas"}, [25]),
        ({"query": "Norway"}, [19]),
        ({"query": "New Zealand"}, [14]),
    ],
)
async def test_places_as_models_write_them(world: ToolWorld, where: dict[str, str], numbers: list[int]) -> None:
    """With state and country after the town, by letters, without accents; another state is another place."""
    assert (await world.call("search_spots", **where)).ids == [spot(number) for number in numbers]


async def test_a_state_that_is_stored_by_its_letters(world: ToolWorld) -> None:
    """The app takes any text; a name finds letters as letters find a name."""
    await world.database["spots"].update_one({"_id": ObjectId(spot(1))}, {"$set": {"state": "or"}})
    for where in ({"state": "Oregon"}, {"state": "OR"}, {"city": "Portland, Oregon"}, {"query": "Portland Oregon"}):
        assert (await world.call("search_spots", **where)).ids == [spot(1)]
