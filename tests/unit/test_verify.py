"""Verify: every kind of difference has its name, and what is right has none."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final
from unittest.mock import patch

from bson import Timestamp

from brain.knowledge.chunk import content_hash
from tests.support import virtual
from tests.support.sim_database import Database, Row
from tests.support.sim_ports import SimStore
from tests.support.sim_stage import TARGET, TRICKS, Stage, document, in_place, trick
from tests.support.sim_weather import Weather
from worker.audit.compare import Comparer
from worker.audit.verify import Auditor, BadRow, Kind, Suspects, settle
from worker.model import AuditedChunk, DocKey, LedgerRow
from worker.pipeline.shape import Shaper

SOURCES: Final = ["tricks"]
NEVER: Final = Timestamp(4_000_000_000, 1)
"""In the year 2096."""
ONE: Final = replace(TARGET, chunker_versions={"tricks": 1})


def auditor(stage: Stage, store: SimStore | None = None) -> Auditor:
    """An auditor of the stage."""
    shaper = Shaper(stage.documents, {"tricks": TRICKS}, TARGET.tokens, stage.clock, in_place)
    store = store or SimStore(stage.db, stage.weather)
    return Auditor(Comparer(stage.documents, store, shaper, ONE), store, ONE)


def nobody(_source: str, _seen: int) -> None:
    """Nobody looks at the progress."""


async def right_stage() -> Stage:
    """A stage on which all is right: two tricks that name each other, one with two parts, and a hidden one."""
    stage = Stage()
    stage.put(document(1, "Ollie", "pop", "slide", links=(2,)), told=False)
    stage.put(document(2, "Pop", "x", links=(1,)), told=False)
    stage.put(document(3, "Hidden", "secret", hidden=True), told=False)
    await stage.leader().backfill(SOURCES, "first")
    return stage


async def differing(stage: Stage) -> dict[Kind, int]:
    """How many chunks differ, by kind."""
    suspects = await auditor(stage).audit(SOURCES, nobody)
    assert suspects.count("tricks") == suspects.count()
    assert suspects.count("tips") == Counter()
    assert bool(suspects) == bool(suspects.count())
    return dict(suspects.count())


def change(stage: Stage, number: int, part: str, **fields: object) -> None:
    """Break a stored chunk by hand."""
    id_ = f"tricks/n:{number}/{part}"
    row = stage.db.chunks[trick(number)][id_]
    stage.db.chunks[trick(number)][id_] = Row(replace(row.stored, **fields), row.draft, row.vector)


def test_what_is_right_has_no_difference() -> None:
    """Also over many pages, and nothing is written or embedded by looking."""

    async def main() -> None:
        stage = await right_stage()
        sent, seen = list(stage.client.sent), list[int]()
        suspects = await auditor(stage).audit(SOURCES, lambda _source, count: seen.append(count))
        assert not suspects
        assert seen == [1, 2, 3]
        assert stage.client.sent == sent

    with patch("worker.audit.compare.IDS", 1):
        virtual.run(main)


def test_every_kind_has_its_name() -> None:
    """Missing, stale by text and by metadata, of another model, orphaned, duplicated."""

    async def main() -> None:
        stage = await right_stage()
        del stage.db.chunks[trick(1)]["tricks/n:1/body-0"]
        assert await differing(stage) == {"missing": 1}
        stage = await right_stage()
        stage.put(document(2, "Pop", "y", links=(1,)))
        change(stage, 1, "body-0", content_hash="old")
        assert await differing(stage) == {"stale": 2}
        stage = await right_stage()
        change(stage, 1, "body-0", model="other")
        change(stage, 1, "body-1", dimensions=7)
        assert await differing(stage) == {"wrongModel": 2}
        stage = await right_stage()
        stage.put(document(1, "Ollie", "pop", links=(2,)))
        assert await differing(stage) == {"orphaned": 1}
        stage = await right_stage()
        row = stage.db.chunks[trick(1)]["tricks/n:1/body-0"]
        stage.db.chunks[trick(1)]["tricks/n:1/copy"] = Row(
            replace(row.stored, id="tricks/n:1/copy"), row.draft, row.vector
        )
        assert await differing(stage) == {"duplicated": 1}

    virtual.run(main)


def test_chunks_of_documents_that_are_gone_or_hidden_are_orphans() -> None:
    """Whoever missed the event; and who named them is stale."""

    async def main() -> None:
        stage = await right_stage()
        stage.put(document(1, "Ollie", "pop", "slide", links=(), hidden=True), told=False)
        assert await differing(stage) == {"orphaned": 4}
        stage = await right_stage()
        stage.delete(1, told=False)
        assert await differing(stage) == {"orphaned": 4}

    virtual.run(main)


def test_a_debt_is_a_difference_until_it_is_paid() -> None:
    """Though the text may turn out to be the same."""

    async def main() -> None:
        stage = await right_stage()
        stage.db.ledger[trick(1)] = replace(stage.db.ledger[trick(1)], stale_since=stage.db.now())
        assert await differing(stage) == {"stale": 1}

    virtual.run(main)


def test_a_version_that_nobody_has_read_is_a_difference_until_it_is_written_over() -> None:
    """Of a chunk, of a ledger row, of a tombstone; a look mends it, and the next edit comes through."""

    async def main() -> None:
        stage = await right_stage()
        stage.db.ledger[trick(1)] = replace(stage.db.ledger[trick(1)], version=NEVER)
        stage.db.ledger[trick(3)] = LedgerRow(trick(3), NEVER, deleted=True, face="Hidden")
        change(stage, 2, "body-0", version=NEVER)
        assert await differing(stage) == {"stale": 3}
        await stage.leader().look([trick(1), trick(2), trick(3)], "repair")
        assert await differing(stage) == {}
        assert max(row.version for row in stage.db.ledger.values()) <= stage.db.now()
        stage.put(document(1, "Ollie", "pop", "slide", "land", links=(2,)), told=False)
        await stage.leader().look([trick(1)], "repair")
        assert await differing(stage) == {}

    virtual.run(main)


def test_a_dead_letter_is_told_elsewhere() -> None:
    """It alone makes nothing differ, whatever is stored of it."""

    async def main() -> None:
        stage = await right_stage()
        stage.put(document(2, "Pop", "z", links=(1,), poison="text"), told=False)
        stage.put(document(3, "Hidden", "z", poison="shape"), told=False)
        await stage.leader().backfill(SOURCES, "again")
        assert set(stage.db.letters) == {trick(2), trick(3)}
        assert await differing(stage) == {}

    virtual.run(main)


class Odd(SimStore):
    """Finds rows that no document explains, and one that is damaged."""

    rows: Sequence[AuditedChunk] = ()

    def __init__(self, database: Database, weather: Weather) -> None:
        super().__init__(database, weather)
        self.asked: list[Sequence[object] | None] = []

    async def audit(self, among: Sequence[object] | None = None) -> AsyncIterator[AuditedChunk]:
        """Those of the test; says which were asked for."""
        self.asked.append(among)
        for row in self.rows:
            if among is None or row.id in among:
                yield row


def test_rows_that_nobody_owns_and_damaged_ones_are_found() -> None:
    """Damage of a source that is not asked for is not told; nobody's row always is."""

    async def main() -> None:
        stage = await right_stage()
        store = Odd(stage.db, stage.weather)
        store.rows = [
            AuditedChunk("a", "tricks", trick(1), sound=True),
            AuditedChunk("b", "tricks", trick(1), sound=False),
            AuditedChunk({"odd": 7}, "tricks", None, sound=True),
            AuditedChunk("d", "nowhere", None, sound=True),
            AuditedChunk("c", "riders", DocKey.of("riders", 1), sound=False),
        ]
        suspects = await auditor(stage, store).audit(SOURCES, nobody)
        damaged = BadRow("b", "tricks", "stale", trick(1))
        assert list(suspects.rows.values()) == [
            damaged,
            BadRow({"odd": 7}, "tricks", "orphaned", None),
            BadRow("d", "nowhere", "orphaned", None),
        ]
        assert (dict(suspects.documents), suspects.to_look_at) == ({}, [trick(1)])
        assert suspects.count() == {"stale": 1, "orphaned": 2}
        store.rows = store.rows[:2]
        again = await auditor(stage, store).again(suspects, SOURCES)
        assert list(again.rows.values()) == [damaged]
        assert store.asked == [None, ["b", {"odd": 7}, "d"]]  # the second time the suspects alone

    virtual.run(main)


def test_of_some_sources_their_own_rows_alone() -> None:
    """Rows of nobody in another source, or in none, are for who asks for everything."""

    async def main() -> None:
        stage = await right_stage()
        store = Odd(stage.db, stage.weather)
        store.rows = [
            AuditedChunk(number, source, None, sound=True)
            for number, source in enumerate(("tricks", "tips", "nowhere"))
        ]
        shaper = Shaper(stage.documents, {"tricks": TRICKS}, TARGET.tokens, stage.clock, in_place)
        two = replace(TARGET, chunker_versions={"tricks": 1, "tips": 1})
        one = Auditor(Comparer(stage.documents, store, shaper, two), store, two)
        assert (await one.audit(["tricks"], nobody)).count() == {"orphaned": 1}

    virtual.run(main)


def test_a_row_must_hold_what_its_hash_is_of() -> None:
    """But for one of a document that differs anyway, or is dead-lettered: that may rightly be of an older version."""

    async def main() -> None:
        stage = await right_stage()
        store = Odd(stage.db, stage.weather)
        digest = content_hash("x", {"title": "Pop"}, 1)
        good = AuditedChunk(
            "a", "tricks", trick(1), sound=True, text="x", content_hash=digest, metadata={"title": "Pop"}
        )
        odd: list[dict[str, object]] = [{"title": "Top"}, {"title": "Pop", "more": 1}, {"title": object()}]
        store.rows = [good, *(replace(good, id=number, metadata=fields) for number, fields in enumerate(odd))]
        suspects = await auditor(stage, store).audit(SOURCES, nobody)
        assert [row.id for row in suspects.rows.values()] == [0, 1, 2]
        change(stage, 1, "body-0", content_hash="old")
        suspects = await auditor(stage, store).audit(SOURCES, nobody)
        assert (suspects.rows, suspects.count()) == ({}, {"stale": 1})
        assert not (await auditor(stage, store).again(suspects, SOURCES)).rows

    virtual.run(main)


def test_suspects_beside_a_running_worker_are_given_time() -> None:
    """What the worker mends meanwhile is no difference; what stays is one, after that time and not before."""

    async def main() -> None:
        stage = await right_stage()
        stop = asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        stage.put(document(1, "Ollie", "new"))
        stage.put(document(2, "Pop", "unseen", links=(1,)), told=False)
        one = auditor(stage)
        suspects = await one.audit(SOURCES, nobody)
        assert set(suspects.documents) == {trick(1), trick(2)}
        start = stage.clock.monotonic()
        left = await settle(one, suspects, SOURCES, stage.clock, 30)
        assert set(left.documents) == {trick(2)}
        assert 30 <= stage.clock.monotonic() - start < 32
        assert not await settle(one, Suspects(), SOURCES, stage.clock, 30)
        stop.set()
        await serving

    virtual.run(main)
