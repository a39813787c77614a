"""Every shipped tool, fed what no honest model sends, on the real database: refused quickly, nothing run.

A tool that is added to `ALL_TOOLS` is fed too: the arguments are made from its schema.
"""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
from bson import json_util
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from pymongo.asynchronous.change_stream import AsyncChangeStream
from pymongo.asynchronous.database import AsyncDatabase

from brain.arguments import understood
from brain.knowledge.connect import Row
from brain.knowledge.log import configure
from brain.knowledge.pin import Pin
from brain.knowledge.search.service import Found
from brain.registry import CallLog, Outcome, Registry
from brain.tool import AnyTool, ToolContext
from brain.tools import ALL_TOOLS
from tests.support import hostile
from tests.support.figures import FIGURES
from tests.support.tool_world import BOT, MIKA, NOW, ORIGIN, ToolWorld

BOUND: Final = 5.0
"""Seconds of a call that is no refusal: against hanging, on a loaded machine."""

FUZZ_SECONDS: Final = 60.0
FUZZ_ROUND: Final = 200  # examples between two looks at the clock

TOOLS: Final = Registry(ALL_TOOLS)
WRITING: Final = {each.name for each in ALL_TOOLS if each.effect == "write"}
each_tool = pytest.mark.parametrize("shipped", ALL_TOOLS, ids=[each.name for each in ALL_TOOLS])


class NothingFound:
    """Search in an empty knowledge base."""

    async def search(self, query: str, sport: str | None = None, doc_type: str | None = None, limit: int = 5) -> Found:
        """No hits."""
        del query, sport, doc_type, limit
        return Found((), Pin("test/model", 4), "exact")


def asking(world: ToolWorld, turn: str | None = None) -> ToolContext:
    """A rider's call."""
    return ToolContext(
        world.database, NothingFound(), lambda: NOW, user_id=MIKA, companion_id=BOT, turn_id=turn, origin=ORIGIN
    )


@dataclass(frozen=True, slots=True)
class Written:
    """What was written since the last look, by the change stream: exact on every server, since it is in order."""

    database: AsyncDatabase[Row]
    stream: AsyncChangeStream[Row]

    async def since(self) -> list[str]:
        """The collections, one an event; reads up to a mark that it sets itself."""
        mark = (await self.database["marks"].insert_one({})).inserted_id
        found: list[str] = []
        async for event in self.stream:
            if event.get("documentKey") == {"_id": mark}:
                break
            found.append(f"{event['operationType']} {event['ns']['coll']}")
        return found


async def everything(world: ToolWorld) -> str:
    """Every document."""
    names = sorted(await world.database.list_collection_names())
    return "".join([json_util.dumps([row async for row in world.database[name].find({})]) for name in names])


@pytest.mark.parametrize("logged", [False, True], ids=["quiet", "BRAIN_LOG_ARGUMENTS=1"])
async def test_hostile_arguments_are_refused_and_nothing_is_run(
    world: ToolWorld,
    tmp_path: Path,
    record_property: Any,  # noqa: ANN401 pytest's
    logged: bool,  # noqa: FBT001 pytest's
) -> None:
    """With a sentence, without a value in it, within a tenth of a second."""
    tools, giants, before = Registry(ALL_TOOLS, CallLog(arguments=logged)), hostile.giants(), await everything(world)
    slowest, calls = (0.0, ""), 0
    with (tmp_path / "log").open("wb") as file, configure("INFO", fd=file.fileno()):
        for shipped in tools:
            for what, arguments in chain(hostile.refused(shipped), giants.items()):
                seconds = await _refusal(tools, shipped.name, arguments, asking(world, "hostile"))
                assert seconds <= hostile.PROMISED, (shipped.name, what)
                slowest, calls = max(slowest, (seconds, f"{shipped.name}: {what}")), calls + 1
    assert await everything(world) == before
    seconds, which = slowest
    record_property(FIGURES, f"hostile arguments: {calls} calls, slowest {1000 * seconds:.1f} ms ({which})")


async def _refusal(tools: Registry, name: str, arguments: Any, context: ToolContext) -> float:  # noqa: ANN401 anything
    """Processor seconds of a call that must be refused, the best of some."""
    took: list[float] = []
    for _ in range(hostile.RUNS):
        began = time.process_time()
        outcome = await tools.call(name, arguments, context)
        took.append(time.process_time() - began)
        assert outcome.code == "invalid_arguments", (name, outcome.text)
        assert len(outcome.text) < 1_200, (name, outcome.text)
    return min(took)


@each_tool
def test_honest_arguments_are_understood(shipped: AnyTool) -> None:
    """The base of all hostile ones is sound, so those are refused for what was changed in them."""
    assert understood(shipped.arguments, hostile.honest(shipped))


@each_tool
async def test_words_are_never_patterns(world: ToolWorld, shipped: AnyTool) -> None:
    """A text that would ruin a regular expression is looked for like any other."""
    good = hostile.honest(shipped)
    for name in [name for name, value in good.items() if value == "kickflip"]:
        for pattern in hostile.PATTERNS:
            began = time.perf_counter()
            outcome = await TOOLS.call(shipped.name, {**good, name: pattern}, asking(world))
            assert time.perf_counter() - began < BOUND, (name, pattern)
            assert outcome.code != "internal", (name, pattern, outcome.text)


JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.sampled_from([hostile.ID, MIKA, "kickflip", "$where", "bmx", 1, 0, -1, 10**20]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$gt", "$ne", "a.b", "__proto__", "x"]) | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, str | Mapping[str, object]]:
    """A shipped tool and arguments for it: honest ones changed here and there, or any text."""
    shipped = draw(st.sampled_from(ALL_TOOLS))
    good = hostile.honest(shipped)
    changed = good | draw(st.dictionaries(st.sampled_from(sorted(good)) if good else st.text(), JSON, max_size=3))
    for name in draw(st.sets(st.sampled_from(sorted(changed)), max_size=2)) if changed else ():
        del changed[name]
    text = json.dumps(changed)
    kinds = st.just(changed) | st.just(text) | st.text() | st.integers(0, len(text)).map(lambda end: text[:end])
    return shipped.name, draw(kinds)


@pytest.mark.slow
async def test_any_arguments_end_in_an_answer(world: ToolWorld, record_property: Any) -> None:  # noqa: ANN401 pytest's
    """For a minute: never an exception, never a bug, and neither a read nor a refused write has written anything.

    FUZZ_SEED=n draws the same calls in the same order.
    """
    first = int(os.environ.get("FUZZ_SEED") or random.SystemRandom().randrange(2**32))
    print(f"FUZZ_SEED={first}")  # noqa: T201 shown when it fails
    until = time.monotonic() + FUZZ_SECONDS
    outcomes: Counter[str] = Counter()
    rounds, writes = 0, 0
    async with await world.database.watch() as stream:
        written = Written(world.database, stream)
        while time.monotonic() < until:
            for name, arguments in _examples(first + rounds):
                outcome = await _judged(asking(world, f"fuzz {rounds}"), name, arguments)
                outcomes[outcome.code or "ok"] += 1
                found = await written.since()
                assert not found or (outcome.ok and name in WRITING), (name, arguments, outcome.text, found)
                writes += bool(found)
            rounds += 1
    assert writes, "no call wrote anything: the proof would prove nothing"
    told = f"{outcomes.total()} calls, {writes} of them wrote, {dict(outcomes)} (FUZZ_SEED={first})"
    record_property(FIGURES, f"fuzz of all tools: {told}")


def _examples(number: int) -> list[tuple[str, str | Mapping[str, object]]]:
    """Calls drawn from a seed."""
    found: list[tuple[str, str | Mapping[str, object]]] = []

    @seed(number)
    @settings(max_examples=FUZZ_ROUND, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
    @given(calls())
    def draw(call: tuple[str, str | Mapping[str, object]]) -> None:
        found.append(call)

    draw()
    return found


async def _judged(context: ToolContext, name: str, arguments: str | Mapping[str, object]) -> Outcome:
    """The outcome of a call, whose promises hold."""
    began = time.perf_counter()
    outcome = await TOOLS.call(name, arguments, context)
    assert time.perf_counter() - began < BOUND, (name, arguments)
    told = json.loads(outcome.text)
    assert told["ok"] is outcome.ok
    assert outcome.code not in {"internal", "unavailable", "timeout"}, (name, arguments, outcome.text)
    return outcome
