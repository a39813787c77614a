"""search_trickipedia over the sample: names, slang, meaning, legs that fail, hints that are none, hidden edges."""

import asyncio
import json
import re
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import AutoReconnect

import brain.trickbook.trick_search as legs
from brain.knowledge.errors import IndexMissing, Unavailable
from brain.knowledge.search.service import Found
from tests.support.tool_world import ORIGIN, Answer, SilentKnowledge, ToolWorld

KICKFLIP = "5a0000000000000000000011"


class BrokenKnowledge:
    """Search in the chunks that fails, or never answers."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    async def search(self, query: str, sport: str | None = None, doc_type: str | None = None, limit: int = 5) -> Found:
        """The error, or no end."""
        if self.error is None:
            await asyncio.Event().wait()
        raise self.error or AssertionError


@pytest.fixture
def quiet(world: ToolWorld) -> ToolWorld:
    """The sample without vectors: what names and words find by themselves."""
    world.knowledge = SilentKnowledge()
    return world


def names(answer: Answer) -> list[str]:
    """The names of the results."""
    return [hit["name"] for hit in answer.data["results"]]


@pytest.mark.parametrize(
    ("search", "first"),
    [
        ("50-50 grind", "50-50 Grind"),
        ("5-0", "5-0 Grind"),
        ("tre flip", "Tre Flip (360 Flip)"),
        ("Tre Flip (360 Flip)", "Tre Flip (360 Flip)"),
        ("how do I do a TRE FLIP?", "Tre Flip (360 Flip)"),
        ("back three", "Backside 360"),
        ("back 3 on a snowboard", "Backside 360"),
        ("50-50 (Switch) + 180 Out", "50-50 (Switch) + 180 Out"),
        ("kick flip", "Kickflip"),
        ("kíckflip", "Kickflip"),
        ("soul grind", "Soul Grind"),
        ("kickflips", "Kickflip"),
        ("teach me some TRE FLIPS", "Tre Flip (360 Flip)"),
        ("50-50 grinds on a ledge", "50-50 Grind"),
        ("back threes", "Backside 360"),
        ("boneless", "Boneless"),
    ],
)
async def test_names_aliases_and_slang_come_first(quiet: ToolWorld, search: str, first: str) -> None:
    """Exact, in any case, alone or in a sentence; "50-50" and "5-0" yield no keyword in the old search."""
    found = await quiet.call("search_trickipedia", search=search)
    assert found.error == {}
    assert names(found)[0] == first


async def test_one_name_in_several_sports(quiet: ToolWorld) -> None:
    """A bare "50-50" means the ledge, the rail and the box; the sport decides."""
    assert {"50-50 Grind", "50-50 Box"} <= set(names(await quiet.call("search_trickipedia", search="50-50")))
    for sport, name in (("skateboarding", "50-50 Grind"), ("snowboarding", "50-50 Box")):
        assert names(await quiet.call("search_trickipedia", search="50-50", category=sport))[0] == name


async def test_slang_finds_a_trick_whose_editors_did_not_think_of_it(quiet: ToolWorld) -> None:
    """A "front five" is a frontside 540, with no such alias in the data."""
    row = {"_id": ObjectId(), "name": "Frontside 540", "category": "Snowboarding", "url": "frontside-540"}
    await quiet.database["trickipedia"].insert_one(row)
    assert names(await quiet.call("search_trickipedia", search="teach me a front five"))[0] == "Frontside 540"


@pytest.mark.parametrize("search", ["c++ (switch)", "50-50 (switch", "(", "a.*b", "[", "\\", "$where", "^", "+" * 200])
async def test_a_pattern_in_the_words_is_only_words(quiet: ToolWorld, search: str) -> None:
    """Regex injection and crash: "c++" broke the query; nothing here may match everything either."""
    name = "c++ (switch)"
    await quiet.database["trickipedia"].insert_one({"_id": ObjectId(), "name": name, "category": "Skateboarding"})
    found = await quiet.call("search_trickipedia", search=search)
    assert found.error == {}
    if search == name:
        assert names(found)[0] == name
    if search == "a.*b":
        assert names(found) == []


async def test_the_fields_of_a_hit(quiet: ToolWorld) -> None:
    """The keys of the shipped tool, with links; no hidden field; a card."""
    found = await quiet.call("search_trickipedia", search="kickflip", category="skate")
    assert set(found.data) == {"results", "total", "important"}
    hit = found.data["results"][0]
    assert hit["id"] == KICKFLIP
    assert hit["webUrl"] == f"{ORIGIN}/trickipedia/skateboarding/kickflip"
    assert (hit["category"], hit["sport"], hit["difficulty"]) == ("Skateboarding", "skateboarding", "Intermediate")
    assert len(hit["description"]) <= 200
    assert len(hit["steps"]) == 3
    assert 1 <= len(hit["aliases"]) <= 4
    assert {"name", "difficulty", "url"} <= set(hit["prerequisites"][0])
    assert all(one["url"].startswith(f"{ORIGIN}/trickipedia/") for one in hit["nextSteps"])
    card = found.cards[0]
    assert (card.type, card.data["_id"], card.data["name"]) == ("trick_card", KICKFLIP, "Kickflip")
    assert "imageUrl" not in hit


async def test_only_reviewed_and_published_edges_are_shown(quiet: ToolWorld) -> None:
    """The sample's draft, disputed and rejected edges are nonsense on purpose; dangling ones point nowhere."""
    hidden = ("vert ramp for a year", "deepest bowl in town", "skip everything between", "backflip before")
    for search in ("kickflip", "tre flip", "ollie", "butter", "impossible", "pop up"):
        text = (await quiet.call("search_trickipedia", search=search)).text
        assert not [words for words in hidden if words in text]
    impossible = (await quiet.call("search_trickipedia", search="impossible")).data["results"][0]
    assert all(one["name"] for one in impossible["nextSteps"])


async def test_tutorials_are_active_ones_featured_first_at_most_four(quiet: ToolWorld) -> None:
    """An unavailable one is not offered; addresses that are none are left out; the reply may show the rest."""
    tutorials = [
        {"canonicalUrl": f"https://learn.example.com/{number}", "platform": "web", "title": f"T{number}"}
        for number in range(5)
    ]
    tutorials[0]["availability"] = "unavailable"
    tutorials[1]["canonicalUrl"] = "javascript:alert(1)"
    tutorials += [{"canonicalUrl": "https://learn.example.com/best", "featured": True, "availability": "Active"}]
    tutorials += [{"canonicalUrl": f"https://learn.example.com/more{number}"} for number in range(3)]
    await quiet.database["trickipedia"].update_one({"_id": ObjectId(KICKFLIP)}, {"$set": {"tutorials": tutorials}})
    hit = (await quiet.call("search_trickipedia", search="kickflip")).data["results"][0]
    assert [tutorial["url"].rsplit("/", 1)[1] for tutorial in hit["tutorials"]] == ["best", "2", "3", "4"]
    assert [tutorial["featured"] for tutorial in hit["tutorials"]] == [True, False, False, False]


@pytest.mark.parametrize("category", ["snowboarding", "SNOW", " Snowboarding ", "snowboard"])
async def test_the_category_is_a_sport_in_any_spelling(quiet: ToolWorld, category: str) -> None:
    """The old filter was exact and case-sensitive; the sample's Method has its category in lower case."""
    found = await quiet.call("search_trickipedia", search="ollie", category=category)
    assert {hit["sport"] for hit in found.data["results"]} == {"snowboarding"}
    assert names(await quiet.call("search_trickipedia", search="method", category=category))[0] == "Method"


async def test_the_first_tricks_of_a_sport_with_odd_spellings(quiet: ToolWorld) -> None:
    """Its name is "Inline Skating", also with blanks around it; by name, at most five."""
    found = await quiet.call("search_trickipedia", category="rollerblade")
    assert names(found) == sorted(names(found))
    assert {hit["sport"] for hit in found.data["results"]} == {"rollerblading"}
    assert len(found.data["results"]) == 5
    rows = await quiet.database["trickipedia"].find({"_id": {"$ne": ObjectId("5f0000000000000000000010")}}).to_list()
    inline = [row["_id"] for row in rows if re.search("inline", str(row.get("category")), re.IGNORECASE)]
    await quiet.database["trickipedia"].delete_many({"_id": {"$in": inline}})
    assert names(await quiet.call("search_trickipedia", category="inline")) == ["Soul Grind"]


@pytest.mark.parametrize("hint", ["flatground", "rail", "park", "$ne"])
async def test_a_category_that_is_no_sport_is_ignored_and_said(quiet: ToolWorld, hint: str) -> None:
    """Hints of the old tool description can never match a stored category."""
    found = await quiet.call("search_trickipedia", search="kickflip", category=hint, difficulty="gnarly")
    assert names(found)[0] == "Kickflip"
    assert len(found.data["notes"]) == 2
    assert hint not in json.dumps(found.data["notes"])


async def test_difficulty_in_loose_words(quiet: ToolWorld) -> None:
    """A "beginner (1)" is easy; case does not count."""
    found = await quiet.call("search_trickipedia", category="scooter", difficulty="EASY")
    assert "Manual" in names(found)
    assert all("eginner" in hit["difficulty"] for hit in found.data["results"])


async def test_nothing_found_is_said(quiet: ToolWorld) -> None:
    """An empty result and a sentence, no failure."""
    found = await quiet.call("search_trickipedia", search="underwater basket weaving")
    assert found.data["results"] == []
    assert found.data["total"] == 0
    assert "message" in found.data
    assert "important" not in found.data


@pytest.mark.parametrize("odd", [5, ["a"], {"$gt": ""}, "", "   ", "x" * 201])
async def test_odd_arguments_are_refused(quiet: ToolWorld, odd: object) -> None:
    """With a sentence; nothing is run."""
    assert (await quiet.call("search_trickipedia", search=odd)).code == "invalid_arguments"


async def test_every_odd_shape_of_the_sample_is_told(quiet: ToolWorld) -> None:
    """Missing arrays, null, HTML, objects for texts: each of the 129 tricks is found by its own name."""
    rows = await quiet.database["trickipedia"].find({}, {"name": 1, "category": 1}).to_list()
    for row in rows:
        found = await quiet.call("search_trickipedia", search=row["name"], category=row["category"])
        assert str(row["_id"]) in found.ids, row["name"]
        assert "<" not in found.data["results"][0].get("description", "")


async def test_meaning_finds_what_no_word_names(knowing: ToolWorld) -> None:
    """A description in other words, by the vectors of the sample's chunks."""
    found = await knowing.call("search_trickipedia", search="board turns under me once around its long axis")
    assert "Kickflip" in names(found)
    assert "notes" not in found.data


async def test_names_and_meaning_together(knowing: ToolWorld) -> None:
    """The trick that is named first, then what is near."""
    found = await knowing.call("search_trickipedia", search="back three")
    assert names(found)[0] == "Backside 360"
    assert len(names(found)) > 1


async def test_nonsense_finds_nothing_near(knowing: ToolWorld) -> None:
    """The nearest of all tricks has nothing to do with it."""
    assert names(await knowing.call("search_trickipedia", search="mortgage interest rates")) == []


@pytest.mark.parametrize("error", [Unavailable("down"), IndexMissing("no index"), None])
async def test_failing_vectors_lose_no_name(
    world: ToolWorld, error: Exception | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Refused, missing or silent: the names are told, and that something was left out; the log names the leg."""
    monkeypatch.setattr(legs, "LEG_SECONDS", 0.5)
    world.knowledge = BrokenKnowledge(error)
    found = await world.call("search_trickipedia", search="tre flip")
    assert names(found)[0] == "Tre Flip (360 Flip)"
    assert len(found.data["notes"]) == 1
    assert "meaning" in found.data["notes"][0]
    assert "search_leg_failed" in [vars(record).get("action") for record in caplog.records]


@pytest.mark.parametrize("broken", ["names", "words"])
async def test_a_failing_look_up_loses_no_near_trick(
    knowing: ToolWorld, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other way round."""

    async def fail(*_: object) -> list[dict[str, Any]]:
        message = "gone"
        raise AutoReconnect(message)

    monkeypatch.setattr(legs, "LEGS", {**legs.LEGS, broken: fail})
    found = await knowing.call("search_trickipedia", search="tre flip scoop")
    assert names(found)[0] == "Tre Flip (360 Flip)"
    assert len(found.data["notes"]) == 1
    assert broken in found.data["notes"][0]


async def test_a_trick_s_very_name_costs_no_scan(quiet: ToolWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are looked for where the question is more than a name, or names no trick of that sport."""
    asked: list[str] = []

    async def words(_context: object, question: str, _wanted: object) -> list[dict[str, Any]]:
        asked.append(question)
        return []

    monkeypatch.setattr(legs, "LEGS", {**legs.LEGS, "words": words})
    await quiet.call("search_trickipedia", search="TRE flip")
    assert asked == []
    await quiet.call("search_trickipedia", search="tre flip", category="surf")
    await quiet.call("search_trickipedia", search="scoop a tre flip")
    assert asked == ["tre flip", "scoop a tre flip"]


async def test_when_all_legs_fail_the_call_fails(world: ToolWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the vectors' error, as "nothing found" would be a lie."""

    async def fail(*_: object) -> list[dict[str, Any]]:
        message = "gone"
        raise AutoReconnect(message)

    world.knowledge = BrokenKnowledge(Unavailable("down"))
    monkeypatch.setattr(legs, "LEGS", {"names": fail, "words": fail, "similar meaning": legs.by_vector})
    found = await world.call("search_trickipedia", search="tre flip")
    assert found.code == "unavailable"
    assert found.error["retryable"] is True
