"""The shipped tools search_spots, search_knowledge and remember_user_info over the sample, with the traps of old."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from brain.knowledge.connect import Row
from brain.knowledge.errors import (
    IndexMissing,
    IndexNotReady,
    KnowledgeError,
    PinMismatch,
    Poison,
    Refused,
    Unavailable,
    Unreachable,
)
from brain.knowledge.search import Hit
from brain.knowledge.search.service import Found
from brain.registry import Registry
from brain.tool import ToolContext
from brain.tools import ALL_TOOLS
from brain.trickbook.facts import MOST_FACTS
from tests.support.sample_chunks import PIN
from tests.support.tool_world import BOT, JUNO, LOTTE, MIKA, NOW, ORIGIN, TANE, ToolWorld, sample_id

WREN = f"{10}{8:022d}"
"""The other companion."""


def spot(number: int) -> str:
    """The id of a sample spot."""
    return sample_id("30", number)


# --- search_spots -----------------------------------------------------------------------------------------------------


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


# --- search_knowledge -------------------------------------------------------------------------------------------------


class Chunks:
    """Search in given chunks, as the service would: a filter on the sport, then the score."""

    def __init__(self, *hits: Hit, error: KnowledgeError | None = None) -> None:
        self.hits = hits
        self.error = error
        self.asked: list[tuple[str | None, str | None, int]] = []

    async def search(self, query: str, sport: str | None = None, doc_type: str | None = None, limit: int = 5) -> Found:
        """The hits of the sport."""
        self.asked.append((sport, doc_type, limit))
        if self.error is not None:
            raise self.error
        return Found(tuple(hit for hit in self.hits if sport in {None, hit.fields["sport"]})[:limit], PIN, "exact")


def hit(score: float = 0.9, **fields: Any) -> Hit:  # noqa: ANN401 a chunk's fields
    """A chunk."""
    chunk: Row = {
        "docType": "coaching",
        "sport": "surfing",
        "title": "Pop up",
        "text": "Hands flat.",
        "url": None,
        "indexedAt": NOW - timedelta(hours=3),
    }
    return Hit("chunk", score, {**chunk, **fields})


async def test_the_fields_of_a_passage(world: ToolWorld) -> None:
    """Label, link, score and age."""
    world.knowledge = Chunks(hit(url="/docs/pop-up"))
    found = await world.call("search_knowledge", query="pop up")
    assert found.data["results"] == [
        {
            "source": "TrickBook coaching",
            "docType": "coaching",
            "title": "Pop up",
            "text": "Hands flat.",
            "sport": "surfing",
            "url": f"{ORIGIN}/docs/pop-up",
            "score": 0.9,
            "asOf": "2026-11-30T09:00:00Z",
            "age": "3 hours ago",
        }
    ]


async def test_real_questions(knowing: ToolWorld) -> None:
    """Over the sample's chunks, by the local model: a trick, a help page, a spot."""
    for query, source, title in (
        ("how do I kickflip", "Trickipedia", "Kickflip"),
        ("how do I share a list", "TrickBook help", "Share a list"),
        ("marble ledges in los angeles", "Spots", "Pelican Street Ledges"),
    ):
        best = (await knowing.call("search_knowledge", query=query)).data["results"][0]
        assert (best["source"], best["title"]) == (source, title)
        assert best["url"].startswith(ORIGIN)


async def test_nothing_that_must_not_be_said(knowing: ToolWorld) -> None:
    """Drafts, internal pages and spots that wait are in no chunk."""
    for query in ("marmalade-forklift deployment", "trick battles", "warehouse spot pending approval"):
        text = (await knowing.call("search_knowledge", query=query, limit=10)).text
        assert "marmalade" not in text
        assert spot(24) not in text


async def test_nothing_relevant_is_no_failure(knowing: ToolWorld) -> None:
    """The nearest chunk has nothing to do with it."""
    found = await knowing.call("search_knowledge", query="mortgage interest rates")
    assert (found.data["results"], found.data["total"]) == ([], 0)
    assert "Nothing relevant" in found.data["message"]


async def test_an_unrelated_passage_is_cut_by_its_score(world: ToolWorld) -> None:
    """The border of the pin's model."""
    world.knowledge = Chunks(hit(0.66), hit(0.64))
    assert len((await world.call("search_knowledge", query="x")).data["results"]) == 1


async def test_the_sport_is_left_out_once_when_it_left_nothing(world: ToolWorld) -> None:
    """And that is said; with hits there is no second search."""
    world.knowledge = chunks = Chunks(hit())
    found = await world.call("search_knowledge", query="pop up", sport="Skate")
    assert chunks.asked == [("skateboarding", None, 5), (None, None, 5)]
    assert len(found.data["results"]) == 1
    assert "skateboarding" in found.data["notes"][0]
    chunks.asked.clear()
    assert "notes" not in (await world.call("search_knowledge", query="pop up", sport="surf")).data
    assert chunks.asked == [("surfing", None, 5)]


async def test_a_sport_that_left_nothing_where_nothing_is(world: ToolWorld) -> None:
    """Two searches, no note, nothing relevant."""
    world.knowledge = chunks = Chunks()
    found = await world.call("search_knowledge", query="pop up", sport="surf", doc_type="doc", limit=2)
    assert chunks.asked == [("surfing", "doc", 2), (None, "doc", 2)]
    assert "notes" not in found.data
    assert "message" in found.data


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (IndexMissing("x"), "index_missing", False),
        (IndexNotReady("x"), "index_not_ready", True),
        (PinMismatch("x"), "pin_mismatch", False),
        (Unavailable("x"), "unavailable", True),
        (Unreachable("x"), "unavailable", True),
        (Refused("x"), "unavailable", False),
        (Poison("x"), "invalid_arguments", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_each_fault_has_a_code_of_its_own(
    world: ToolWorld,
    error: KnowledgeError,
    code: str,
    retryable: bool,  # noqa: FBT001 a parameter of the table
) -> None:
    """Nothing relevant, index missing, index not ready, search unavailable, pin mismatch: told apart by code."""
    world.knowledge = chunks = Chunks(error=error)
    found = await world.call("search_knowledge", query="pop up", sport="surf")
    assert (found.code, found.error["retryable"]) == (code, retryable)
    assert len(chunks.asked) == 1


@pytest.mark.parametrize("url", ["https://evil.example.com/", "//evil.example.com/", "/\\evil.example.com/", 5])
async def test_long_and_odd_chunks_are_told(world: ToolWorld, url: object) -> None:
    """Texts are cut, missing fields left out, and an address that is no path of the site is not repeated."""
    odd = hit(title=None, text="y" * 9_000, url=url, docType="what", sport=None, indexedAt="?")
    world.knowledge = Chunks(*([odd] * 10))
    found = await world.call("search_knowledge", query="x", limit=10)
    first = found.data["results"][0]
    assert len(first["text"]) <= 1_200
    assert set(first) == {"source", "docType", "title", "text", "score"}
    assert "evil" not in found.text


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"query": ""},
        {"query": "x" * 201},
        {"query": "x", "limit": 11},
        {"query": "x", "limit": 0},
        {"query": "x", "doc_type": "secret"},
        {"query": {"$gt": ""}},
        {"query": "x", "user_id": MIKA},
    ],
    ids=json.dumps,
)
async def test_odd_questions_are_refused(world: ToolWorld, odd: dict[str, Any]) -> None:
    """Before anything is searched."""
    assert (await world.call("search_knowledge", **odd)).code == "invalid_arguments"


async def test_the_static_knowledge_is_retired() -> None:
    """No tool of that name is left; the order of the shipped ones is the old one."""
    names = [tool.name for tool in ALL_TOOLS]
    assert "lookup_boardsport_knowledge" not in names
    assert names[:8] == [
        "search_spots",
        "search_trickipedia",
        "get_user_tricklists",
        "create_tricklist",
        "add_trick_to_list",
        "update_trick_status",
        "search_knowledge",
        "remember_user_info",
    ]


# --- remember_user_info -----------------------------------------------------------------------------------------------


async def profile(world: ToolWorld, rider: str, companion: str = BOT) -> Row:
    """The stored profile, or an empty one."""
    found = await world.database["companion_profiles"].find_one({"userId": rider, "companionId": companion})
    return found or {}


async def test_a_first_memory_has_stage_and_count(world: ToolWorld) -> None:
    """The old upsert left them out; both ids are strings, the count is an int32."""
    found = await world.call("remember_user_info", LOTTE, user_name="Lo", sports=["Skate", "surf", "skateboarding"])
    assert found.data["saved"] == ["name", "sports"]
    stored = await profile(world, LOTTE)
    assert (stored["relationshipStage"], stored["interactionCount"]) == ("stranger", 0)
    assert stored["createdAt"] == NOW
    assert stored["memory"] == {"userName": "Lo"}
    assert stored["traits"] == {"sports": ["skateboarding", "surfing"]}


async def test_the_speaking_companion_remembers_and_no_other(world: ToolWorld) -> None:
    """The old tool wrote to one hard-coded bot."""
    before = await profile(world, MIKA, BOT)
    context = ToolContext(world.database, world.knowledge, lambda: NOW, user_id=MIKA, companion_id=WREN, turn_id="t")
    outcome = await Registry(ALL_TOOLS).call("remember_user_info", {"fact": "Broke a wrist in May"}, context)
    assert outcome.ok, outcome.text
    assert await profile(world, MIKA, BOT) == before
    assert (await profile(world, MIKA, WREN))["memory"]["knownFacts"] == [
        "Wants to learn a tailwhip",  # was one string
        "Broke a wrist in May",
    ]
    nobody = replace(context, companion_id=None, turn_id="u")
    assert not (await Registry(ALL_TOOLS).call("remember_user_info", {"fact": "x y z"}, nobody)).ok


async def test_a_fact_alone_leaves_everything_else_as_it_was(world: ToolWorld) -> None:
    """The old call sent an empty `$set`; stage, count and traits stay."""
    before = await profile(world, MIKA)
    await world.call("remember_user_info", MIKA, fact="Has a bowl at home")
    after = await profile(world, MIKA)
    assert after.pop("memory") == {
        **before.pop("memory"),
        "knownFacts": ["Rides regular", "Afraid of handrails, fine with boxes", "Has a bowl at home"],
    }
    assert after == before


async def test_facts_are_kept_once_and_not_without_end(world: ToolWorld) -> None:
    """The same fact in other words stands once; thirty stand at most, the oldest are forgotten."""
    for fact in ("Rides goofy", "rides GOOFY!", "He rides goofy"):
        await world.call("remember_user_info", JUNO, fact=fact)
    assert len((await profile(world, JUNO))["memory"]["knownFacts"]) == 1
    words = [f"w{number}a w{number}b w{number}c" for number in range(MOST_FACTS + 5)]
    for fact in words:
        await world.call("remember_user_info", JUNO, fact=fact)
    assert (await profile(world, JUNO))["memory"]["knownFacts"] == words[5:]
    assert (await profile(world, JUNO))["memory"]["userName"] == "Juno"


async def test_what_is_told_at_the_same_time_is_all_kept(world: ToolWorld) -> None:
    """In one profile, also where nobody has made the unique index yet."""
    told: list[dict[str, Any]] = [{"user_name": "Lo"}, {"fact": "Rides goofy"}, {"sports": ["bmx"]}]
    answers = await asyncio.gather(*(world.call("remember_user_info", LOTTE, **one) for one in told))
    assert [answer.error for answer in answers] == [{}, {}, {}]
    (stored,) = await world.database["companion_profiles"].find({"userId": LOTTE}).to_list()
    assert stored["memory"] == {"userName": "Lo", "knownFacts": ["Rides goofy"]}
    assert stored["traits"] == {"sports": ["bmx"]}


@pytest.mark.parametrize(
    "memory", [None, "gone", 5, [], {"knownFacts": {"0": "old"}}, {"knownFacts": [None, 5, "old"]}]
)
async def test_a_memory_of_any_type_can_be_added_to(world: ToolWorld, memory: object) -> None:
    """The app PUTs what it likes: no shape of it makes the write fail."""
    whose = {"userId": TANE, "companionId": BOT}
    await world.database["companion_profiles"].update_one(whose, {"$set": {"memory": memory, "traits": memory}})
    found = await world.call("remember_user_info", TANE, fact="Surfs at dawn", sports=["surf"], user_name="T")
    assert found.error == {}
    stored = await profile(world, TANE)
    assert stored["memory"]["knownFacts"][-1] == "Surfs at dawn"
    assert stored["memory"]["userName"] == "T"
    assert stored["traits"]["sports"] == ["surfing"]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"user_name": ""},
        {"fact": " \u200b "},
        {"sports": []},
        {"sports": ["", " "]},
        {"fact": "x" * 201},
        {"user_name": "x" * 61},
        {"sports": ["x"] * 11},
        {"fact": {"$set": 1}},
        {"fact": "x", "companion_id": WREN},
    ],
    ids=json.dumps,
)
async def test_nothing_to_remember_is_refused(world: ToolWorld, odd: dict[str, Any]) -> None:
    """With a sentence, and nothing is written."""
    before = await profile(world, MIKA)
    assert (await world.call("remember_user_info", MIKA, **odd)).code == "invalid_arguments"
    assert await profile(world, MIKA) == before


async def test_nobody_is_remembered_without_signing_in(world: ToolWorld) -> None:
    """Who it is comes from the caller alone."""
    assert (await world.call("remember_user_info", None, fact="x y z")).code == "not_signed_in"


async def test_a_rider_in_capitals_is_the_same_rider(world: ToolWorld) -> None:
    """Hex ids in either case are one id."""
    rider = str(ObjectId("64b0000000000000000000aa"))
    await world.call("remember_user_info", rider.upper(), fact="First things first")
    await world.call("remember_user_info", rider, fact="Second helpings always")
    assert len((await profile(world, rider))["memory"]["knownFacts"]) == 2
    assert len(await world.database["companion_profiles"].find({"userId": rider}).to_list()) == 1
