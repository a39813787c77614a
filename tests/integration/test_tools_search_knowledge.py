"""search_knowledge over the sample, and what it says when it cannot."""

import json
from datetime import timedelta
from typing import Any

import pytest

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
from brain.tools import ALL_TOOLS
from tests.support.sample_chunks import PIN
from tests.support.tool_world import MIKA, NOW, ORIGIN, ToolWorld, sample_id


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
        assert sample_id("30", 24) not in text


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
