"""What `pin` says and asks before it does anything."""

from dataclasses import replace
from typing import cast

import click
import pytest

from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL, Pin
from worker.commands.pin_build import Order, begin_index, model_of
from worker.commands.pin_desk import PinDesk, Progress, Standing, reasons_against
from worker.errors import PinRefused, WrongTopology
from worker.generations import Generations, changed
from worker.vector_index import IndexState

PIN = Pin("vendor/next", 4, "knowledge_chunks_next", "knowledge_vec_next")
READY = IndexState(PIN, supported=True, exists=True, status="READY", queryable=True)
BUILT = Standing(PIN, 7, {"tricks": Progress(7, 7, done=True)}, READY)


def test_nothing_speaks_against_what_is_built_and_ready() -> None:
    """Nor against one that needs no index."""
    assert reasons_against(BUILT, []) == []
    assert reasons_against(replace(BUILT, index=IndexState(PIN, supported=False)), []) == []


def test_every_reason_against_a_switch_is_told_at_once() -> None:
    """What is not built, an index that cannot serve, documents that would vanish: each with what to do."""
    half = replace(BUILT, progress={"tricks": Progress(3, 7, done=False)}, index=replace(READY, status="BUILDING"))
    keys = ["tricks/n:1", "tricks/n:2", "tricks/n:3", "tricks/n:4"]
    built, index, letters, unwatched = reasons_against(half, keys, ["films", "spots"])
    assert "tricks" in built
    assert "BUILDING" in index
    (behind,) = reasons_against(replace(BUILT, index=replace(READY, indexed=6)), [])
    assert "6 of 7 chunks" in behind
    assert reasons_against(replace(BUILT, index=replace(READY, indexed=7)), []) == []
    assert "4 dead-lettered" in letters
    assert "tricks/n:3 …" in letters
    assert "--accept-dead-letters" in letters
    assert "films, spots" in unwatched
    assert "--accept-unwatched" in unwatched


@pytest.mark.parametrize(
    ("order", "model"),
    [
        (Order(OPENAI_LARGE.name), OPENAI_LARGE),
        (Order(OPENAI_SMALL.name, 1536), OPENAI_SMALL),
        (Order(provider="local"), MINILM),
        (Order(MINILM.name), MINILM),
        (Order(provider="openrouter"), OPENAI_SMALL),
    ],
)
def test_a_model_is_named_by_its_name_or_its_provider(order: Order, model: object) -> None:
    """The rest is known here."""
    assert model_of(order) == model


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (Order("no-vendor"), "--model"),
        (Order("vendor/unknown"), "--dimensions"),
        (Order(OPENAI_SMALL.name, 7), "--dimensions must be 1536"),
        (Order(OPENAI_SMALL.name, provider="local"), "--model"),
        (Order(MINILM.name, provider="openrouter"), "--provider"),
    ],
)
def test_a_model_that_cannot_be_is_told_in_the_words_of_the_command(order: Order, words: str) -> None:
    """Not in those of the settings, whose rules these are."""
    with pytest.raises(click.UsageError) as told:
        model_of(order)
    assert words in told.value.message
    assert "EMBEDDING_" not in told.value.message


class Desk:
    """A desk at a server that refuses another search index, or has none, or has one already."""

    def __init__(self, state: IndexState, *, full: bool) -> None:
        self.index = self
        self.state, self.full = state, full
        self.done: list[str] = []

    async def look(self, _pin: Pin) -> IndexState:
        """As it stands."""
        return self.state

    async def create(self, _pin: Pin) -> None:
        """Refuse, as Atlas does: IllegalOperation (20), which elsewhere means a standalone server."""
        self.done.append("create")
        if self.full:
            message = "code 20"
            raise WrongTopology(message)

    async def do(self, act: str, _pin: Pin) -> None:
        """Note it."""
        self.done.append(act)


async def test_an_index_that_the_tier_has_no_room_for_takes_the_generation_back() -> None:
    """Before anything was paid for; on other servers it is begun, or not needed."""
    missing = IndexState(PIN, supported=True)
    desk = Desk(missing, full=True)
    with pytest.raises(PinRefused, match="free cluster"):
        await begin_index(cast("PinDesk", desk), PIN)
    assert desk.done == ["create", "drop"]
    for state, done in ((missing, ["create"]), (READY, []), (IndexState(PIN, supported=False), [])):
        other = Desk(state, full=False)
        await begin_index(cast("PinDesk", other), PIN)
        assert other.done == done


class Pins:
    """Generations that somebody changes meanwhile."""

    def __init__(self) -> None:
        self.pins = self
        self.now = Generations(Pin("vendor/now", 4), PIN, "next")

    async def load(self) -> Generations:
        """As they are."""
        return self.now


async def test_who_builds_a_generation_notices_that_it_was_dropped() -> None:
    """Else it would make the collection and a search index anew, which no row names."""
    desk = Pins()
    await PinDesk.still(cast("PinDesk", desk), PIN)
    desk.now = changed(desk.now, "drop", PIN)
    with pytest.raises(PinRefused, match="dropped meanwhile"):
        await PinDesk.still(cast("PinDesk", desk), PIN)
