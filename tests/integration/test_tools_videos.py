"""Videos for a trick: tutorials of the catalogue, lessons and films of TrickBook, and none that is not published."""

from typing import Any

import pytest
from bson import ObjectId

from brain.tools import videos
from tests.support.tool_world import ORIGIN, ToolWorld, sample_id


def film(number: int) -> str:
    """The id of a sample film."""
    return sample_id("40", number)


async def test_tutorials_and_lessons(world: ToolWorld) -> None:
    """The featured tutorial first; their addresses are the only foreign ones that a reply may show."""
    found = await world.call("find_videos", trick="ollie", sport="skate")
    assert found.data["trick"] == "Ollie"
    assert [one["title"] for one in found.data["tutorials"]] == [
        "The ollie from zero, step by step",
        "Five ollie mistakes and their cures",
    ]
    assert [(hit["id"], hit["kind"]) for hit in found.data["results"]] == [(sample_id("41", 2), "tutorial")]
    assert found.cards == ()
    assert found.links == tuple(one["url"] for one in found.data["tutorials"])


async def test_a_film_with_all_its_facts_and_its_card(world: ToolWorld) -> None:
    """By an alias in the film's text; never where it is hosted."""
    found = await world.call("find_videos", trick="50-50", sport="skateboarding")
    (hit,) = found.data["results"]
    assert hit.pop("description").startswith("Eleven cities in eleven weeks")
    assert hit == {
        "id": film(1),
        "kind": "film",
        "title": "Concrete Postcards",
        "producedBy": "Lowlight Pictures",
        "riders": ["Nadia Ferreira", "Theo Lindqvist"],
        "releaseYear": 2025,
        "sportTypes": ["skateboarding"],
        "webUrl": f"{ORIGIN}/media/couch/concrete-postcards",
    }
    assert [(card.type, card.data["_id"], card.data["releaseYear"]) for card in found.cards] == [
        ("video_card", film(1), 2025)
    ]
    for word in ("sample-internal", "sample-drive", "stream.example.com", "images.example.com"):
        assert word not in found.text


async def test_unpublished_and_other_kinds_are_never_found(world: ToolWorld) -> None:
    """Film 11 is unpublished, 12 is no film, library item 5 a draft; nor is one whose flag is only like true."""
    hidden = [await world.row("couch_videos", film(number)) for number in (11, 12)]
    hidden.append(await world.row("media_library", sample_id("41", 5)))
    for row in hidden:
        found = await world.call("find_videos", trick=row["title"])
        assert str(row["_id"]) not in found.text
    odd: list[dict[str, Any]] = [
        {"isPublished": "true"},
        {"isPublished": 1},
        {"isPublished": [True]},
        {"type": ["film"]},
    ]
    rows = [{"type": "film", "isPublished": True, "title": "Kickflip odyssey", **one} for one in odd]
    await world.database["couch_videos"].insert_many(rows)
    assert "Kickflip odyssey" not in (await world.call("find_videos", trick="kickflip")).text


@pytest.mark.parametrize("trick", ["(", ".*", "c++ (switch)", "[a-", "a" * 200, "50-50 (Switch) + 180 Out", "\\"])
async def test_names_are_text_not_patterns(world: ToolWorld, trick: str) -> None:
    """A name with signs matches itself or nothing."""
    found = await world.call("find_videos", trick=trick)
    assert found.code is None
    assert found.data["results"] == []


@pytest.mark.parametrize("words", ["the", "a", "A trick", "in the", "how do I", "b", "-", "..", "?!"])
async def test_words_that_name_nothing_find_nothing(world: ToolWorld, words: str) -> None:
    """Every other film has a "the"; none of them is a trick's. A trick that is called so is found."""
    film = {"title": f"{words} and more {words}", "tags": [words], "type": "film", "isPublished": True}
    await world.database["couch_videos"].insert_one(film)
    found = await world.call("find_videos", trick=words)
    assert found.data["results"] == []
    assert "no video" in found.data["message"]
    await world.database["trickipedia"].insert_one({"name": words, "aliases": ["Zorp flip"], "category": "BMX"})
    await world.database["couch_videos"].insert_one(
        {**film, "_id": ObjectId(), "title": "Zorp-flip", "sportTypes": ["bmx"]}
    )
    assert [hit["title"] for hit in (await world.call("find_videos", trick=words)).data["results"]] == ["Zorp-flip"]


async def test_whole_words_and_the_newest_first(world: ToolWorld) -> None:
    """No ollie is in a collie; a title with a hyphen is met by one with a blank; years of every type sort."""
    titles: list[dict[str, Any]] = [
        {"title": "My collie dog", "releaseYear": 2026},
        {"title": "Nose-press stories", "releaseYear": 2019},
        {"title": "Nose press forever", "releaseYear": 2022},
        {"title": "Another nose  press", "releaseYear": 2022},
        {"title": "Nose Presses", "releaseYear": 2024},
    ]
    common = {"type": "film", "isPublished": True, "sportTypes": ["snowboarding"]}
    await world.database["couch_videos"].insert_many([{**common, **title} for title in titles])
    found = await world.call("find_videos", trick="nose press", limit=10)
    names = [hit["title"] for hit in found.data["results"] if hit["kind"] == "film"]
    assert names == ["Another nose press", "Nose press forever", "Nose-press stories"]
    assert "collie" not in (await world.call("find_videos", trick="ollie")).text


async def test_a_trick_of_one_sport_is_sought_among_its_films(world: ToolWorld) -> None:
    """The manual is a trick of three sports and any film may show it; asked for one sport, only its films."""
    anywhere = await world.call("find_videos", trick="manual")
    assert film(3) in anywhere.ids
    assert (await world.call("find_videos", trick="manual", sport="skateboarding")).ids == []
    assert (await world.call("find_videos", trick="manual", sport="bmx")).ids == [film(3)]


async def test_odd_videos_break_no_answer(world: ToolWorld) -> None:
    """Each is told by what can be read of it."""
    odd: list[dict[str, Any]] = [
        {"title": ["Kickflip"], "riders": None, "releaseYear": "2021", "thumbnails": "x"},
        {"title": "Kickflip", "riders": [{"name": "A"}, 7, None], "releaseYear": {}, "sportTypes": "skateboarding"},
        {"title": None, "description": "a kickflip" + "!" * 9_000, "producedBy": ["x"], "slug": 7},
        {"title": "x", "tags": ["kickflip"], "thumbnails": {"poster": {}}, "releaseYear": float("inf")},
    ]
    rows = [{"type": "film", "isPublished": True, "sportTypes": ["skateboarding"], **one} for one in odd]
    ids = {str(id_) for id_ in (await world.database["couch_videos"].insert_many(rows)).inserted_ids}
    found = await world.call("find_videos", trick="kickflip", limit=10)
    assert ids <= set(found.ids)


async def test_a_search_that_takes_too_long_says_so(world: ToolWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tutorials are still told; it fails at once here, because no time is left."""
    monkeypatch.setattr(videos, "MOST_SECONDS", 0.000_001)
    found = await world.call("find_videos", trick="ollie")
    assert len(found.data["tutorials"]) == 2
    assert found.data["results"] == []
    assert "some may be missing" in found.data["message"]


async def test_nothing_is_said_to_be_nothing(world: ToolWorld) -> None:
    """With the words for it."""
    found = await world.call("find_videos", trick="quadruple backside zorp")
    assert (found.data["tutorials"], found.data["results"], found.data["total"]) == ([], [], 0)
    assert "no video" in found.data["message"]
    for bad in ({}, {"trick": " "}, {"trick": {"$ne": 1}}, {"trick": "ollie", "limit": 11}):
        assert (await world.call("find_videos", **bad)).code == "invalid_arguments"
