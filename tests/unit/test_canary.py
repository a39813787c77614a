"""The canary on virtual time: how long the index took, seldom, bounded, and whatever the database does."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from bson import Timestamp

from brain.knowledge.chunk import Metadata
from tests.support import virtual
from tests.support.sim_recorders import SimMeter
from tests.support.sim_stage import Stage, document, trick
from tests.support.virtual import VirtualClock
from worker.audit.canary import EVERY, LONGEST, Canary, StoredChunk
from worker.errors import Refused, Unreachable
from worker.model import ChunkDraft, Delta, Publication

SECOND = Timestamp(2, 0)


class Index:
    """Finds a chunk so many seconds after it is first asked for, or answers from a list first."""

    def __init__(self, lag: float | None, *first: Exception | None) -> None:
        self.lag = lag
        self.first = list(first)
        self.asked: list[tuple[float, StoredChunk]] = []

    async def finds(self, chunk: StoredChunk) -> bool | None:
        """The answer."""
        now = VirtualClock().monotonic()
        self.asked.append((now, chunk))
        if self.first:
            answer = self.first.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        if self.lag is None:
            await asyncio.sleep(1e6)
            return False
        return now >= next(at for at, one in self.asked if one == chunk) + self.lag


def publication(number: int, version: Timestamp = SECOND, *, texts: int = 1) -> Publication:
    """One with so many new vectors."""
    drafts = (
        ChunkDraft(f"tricks/n:{number}/{part}", "x", Metadata("trick", "Ollie"), "h", "c", 1) for part in range(texts)
    )
    return Publication(Delta(trick(number), version, write=tuple(drafts)), {})


@asynccontextmanager
async def watching(index: Index) -> AsyncGenerator[tuple[Canary, SimMeter]]:
    """A canary that has begun to watch."""
    meter = SimMeter()
    canary = Canary(index, VirtualClock(), meter)
    task = asyncio.ensure_future(canary.watch())
    await asyncio.sleep(0)
    yield canary, meter
    assert not task.done()
    task.cancel()


async def observed(index: Index, *, after: float = 2 * LONGEST) -> list[float]:
    """What is observed of one publication."""
    async with watching(index) as (canary, meter):
        canary.stored(publication(1))
        await asyncio.sleep(after)
        return meter.searchable_lags


def test_the_seconds_until_the_index_finds_it() -> None:
    """At once, soon, late: never too few, and never a quarter too many; asked less and less often."""

    async def main() -> None:
        assert await observed(Index(0.0)) == [0.0]
        for lag in (0.35, 4.0, 90.0):
            (seconds,) = await observed(index := Index(lag))
            assert lag <= seconds <= max(lag * 1.25, lag + 0.1)
            assert len(index.asked) < 50
        assert {chunk for _, chunk in index.asked} == {StoredChunk("tricks/n:1/0", SECOND)}

    virtual.run(main)


def test_now_and_then() -> None:
    """The first new vector counts; what is stored meanwhile, or within EVERY seconds after, is not asked for."""

    async def main() -> None:
        index = Index(1.0)
        async with watching(index) as (canary, meter):
            canary.stored(publication(1, texts=0))
            for number in range(2, 500):
                canary.stored(publication(number))
                await asyncio.sleep(1)
            assert len(meter.searchable_lags) == pytest.approx(500 / (EVERY + 2), abs=1)
        asked = list(dict.fromkeys(chunk.id for _, chunk in index.asked))
        assert asked[0] == "tricks/n:2/0"
        assert len(asked) == len(meter.searchable_lags)

    virtual.run(main)


def test_an_index_that_never_finds_it(caplog: pytest.LogCaptureFixture) -> None:
    """Also one that hangs: so many seconds are observed, one line says so, and the next one has its turn."""

    async def main() -> None:
        for index in (Index(1e9), Index(None)):
            caplog.clear()
            assert [LONGEST <= seconds < LONGEST + 20 for seconds in await observed(index)] == [True]
            assert [vars(record)["action"] for record in caplog.records] == ["canary_not_found"]

    with caplog.at_level(logging.INFO):
        virtual.run(main)


def test_what_the_database_does_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    """An outage is waited through; a chunk that was replaced tells nothing; a refusal is told, and not for ever."""

    async def main() -> None:
        assert await observed(Index(0.0, Unreachable("gone"), Unreachable("gone"))) == [pytest.approx(0.2)]
        assert await observed(Index(1.0, None)) == []
        assert caplog.records == []
        refused = Index(0.0, Refused("no"))
        async with watching(refused) as (canary, meter):
            for at in range(1, 4):
                canary.stored(publication(at))
                await asyncio.sleep(EVERY + 1)
            assert len(meter.searchable_lags) == 2
        assert [vars(record)["action"] for record in caplog.records] == ["canary_refused"]

    virtual.run(main)


def test_a_command_that_does_not_watch_keeps_nothing() -> None:
    """Its publications are told all the same."""
    index = Index(0.0)
    Canary(index, VirtualClock(), SimMeter()).stored(publication(1))
    assert index.asked == []


def test_the_pipeline_tells_of_what_it_stored() -> None:
    """Each publication once, when it is stored; nothing of a look that changed nothing."""

    async def main() -> None:
        stage = Stage()
        told: list[Publication] = []
        stage.world = replace(stage.world, published=told.append)
        key = stage.put(document(1, "Ollie", "pop"))
        await stage.leader().backfill(["tricks"], "asked")
        await stage.leader().look([key], "stream")
        assert [[draft.text for draft in one.delta.write] for one in told] == [["Ollie: pop"]]

    virtual.run(main)
