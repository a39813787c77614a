"""The rules of generations: at most two, one searched, every act repeatable, no name twice."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL, Model, Pin
from worker.errors import PinRefused
from worker.generations import Act, Generations, changed, new_pin, order, ordered

NOON: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)
FIRST: Final = Generations(Pin(OPENAI_SMALL.name, OPENAI_SMALL.dimensions))
LARGE: Final = new_pin(OPENAI_LARGE, NOON)
BUILDING: Final = changed(FIRST, "build", LARGE)
SWITCHED: Final = changed(BUILDING, "switch", LARGE)
ACTS: Final[tuple[Act, ...]] = ("build", "switch", "rollback", "drop")


def test_the_whole_way() -> None:
    """Build, switch, roll back, switch again, drop the old one."""
    assert (BUILDING.active, BUILDING.beside, BUILDING.role) == (FIRST.active, LARGE, "next")
    assert (SWITCHED.active, SWITCHED.beside, SWITCHED.role) == (LARGE, FIRST.active, "previous")
    back = changed(SWITCHED, "rollback", FIRST.active)
    assert (back.active, back.beside, back.role, back.turn) == (FIRST.active, LARGE, "next", 3)
    again = changed(back, "switch", LARGE)
    assert changed(again, "drop", FIRST.active) == Generations(LARGE, leaving=("knowledge_chunks",), turn=5)


@pytest.mark.parametrize(
    ("before", "act", "pin", "why"),
    [
        (BUILDING, "build", new_pin(MINILM, NOON), "two generations exist already"),
        (FIRST, "switch", LARGE, "no generation to switch to"),
        (SWITCHED, "switch", FIRST.active, "no generation to switch to"),
        (FIRST, "rollback", LARGE, "no previous generation"),
        (BUILDING, "rollback", LARGE, "no previous generation"),
        (FIRST, "drop", FIRST.active, "is the active generation"),
        (SWITCHED, "drop", LARGE, "is the active generation"),
    ],
)
def test_what_may_not_be_done_is_refused_in_words(before: Generations, act: Act, pin: Pin, why: str) -> None:
    """A third generation, a switch to nothing, a rollback of nothing, the end of what is searched."""
    with pytest.raises(PinRefused, match=why):
        changed(before, act, pin)


MODELS: Final = (OPENAI_SMALL, OPENAI_LARGE, MINILM, Model("vendor/other", 384, 8192))
STEPS: Final = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 5), st.sampled_from(MODELS)), max_size=20)


@given(STEPS)
def test_whatever_is_asked_in_any_order(steps: list[tuple[Act, int, Model]]) -> None:
    """Two live at most, the searched one never leaves, an act done twice is done once, a name comes once."""
    known = [FIRST.active]
    now = FIRST
    for number, (act, chosen, model) in enumerate(steps):
        pin = new_pin(model, NOON + timedelta(milliseconds=number)) if act == "build" else known[chosen % len(known)]
        if act == "build":
            assert pin.collection not in {one.collection for one in known}
            known.append(pin)
        try:
            after = changed(now, act, pin)
        except PinRefused:
            continue
        assert changed(after, act, pin) == after
        assert len(after.live) <= 2
        assert len(set(after.live)) == len(after.live)
        assert not {one.collection for one in after.live} & set(after.leaving)
        if act in {"build", "drop"}:
            assert after.active == now.active
        now = after


@given(st.sampled_from(ACTS), st.sampled_from(MODELS))
def test_an_order_comes_out_as_it_went_in(act: Act, model: Model) -> None:
    """Through the arguments of a request."""
    assert ordered(order(act, new_pin(model, NOON), 7)) == (act, new_pin(model, NOON), 7)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"act": "drop", "pin": LARGE.as_row()},
        {"act": "burn", "pin": LARGE.as_row()},
        {"act": "drop", "pin": {}},
        {"act": ["drop"], "pin": 1},
    ],
)
def test_an_order_of_another_version_is_refused(arguments: dict[str, object]) -> None:
    """It must not end the worker that takes it."""
    with pytest.raises(PinRefused, match="another version"):
        ordered(arguments)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("openai/text-embedding-3-large", "text-embedding-3-large-8"),
        ("Vendor/Odd Name:free", "odd-name-free-8"),
        ("vendor/" + "x" * 200, "x" * 60 + "-8"),
    ],
)
def test_a_generation_is_named_by_its_model_and_its_begin(name: str, slug: str) -> None:
    """Collection and index say which model they hold, and are short enough."""
    pin = new_pin(Model(name, 8, 8192), NOON)
    assert pin.collection == f"knowledge_chunks_{slug}_{int(NOON.timestamp() * 1000):x}"
    assert pin.index == f"knowledge_vec_{slug}_{int(NOON.timestamp() * 1000):x}"


def test_what_was_left_lying_is_not_done_after_other_changes() -> None:
    """A rollback that nobody did, a switch there and back since: doing it now would undo what somebody wants."""
    back = changed(SWITCHED, "rollback", FIRST.active, SWITCHED.turn)
    again = changed(back, "switch", LARGE, back.turn)
    with pytest.raises(PinRefused, match="changed since"):
        changed(again, "rollback", FIRST.active, SWITCHED.turn)
    assert changed(again, "switch", LARGE, back.turn) == again  # done already: its answer was lost
