"""The leader's works beside the tail: one-shot ones, requests, what expires, debts, and a backlog."""

import asyncio
import gc
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from brain.knowledge.embedding import Embedded, Purpose
from tests.support import virtual
from tests.support.sim_source import SimClient, WordCounter
from tests.support.sim_stage import FAIR, Stage, document, trick
from worker.embedding.batcher import BatchingEmbedder, Limits
from worker.errors import FencedOff
from worker.model import DocKey, LedgerRow, Request
from worker.pipeline.watermark import Ticket


def test_a_backfill_scans_its_source_and_ends() -> None:
    """Without the stream; orphans go, debts are paid, and nothing runs on."""

    async def main() -> None:
        stage = Stage()
        stage.put(document(1, "Ollie", "pop", links=(2,)), told=False)
        stage.put(document(2, "Pop", "x"), told=False)
        stage.db.ledger[trick(9)] = LedgerRow(trick(9), stage.db.now(), face="Gone")
        await stage.leader().backfill(["tricks"], "backfill")
        assert stage.wrong() == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtual.run(main)


def test_a_look_at_a_source_that_is_not_watched_looks_at_nothing() -> None:
    """A dead letter of former days, say."""

    async def main() -> None:
        stage = Stage()
        await stage.leader().look([DocKey.of("former", 1)], "repair")
        assert stage.meter.came_in == 0

    virtual.run(main)


def test_a_backfill_that_is_fenced_off_leaves_no_task() -> None:
    """Its scanner and its waiting end with it."""

    async def main() -> None:
        stage = Stage()
        for number in range(50):
            stage.put(document(number, "Ollie", str(number)), told=False)
        stage.weather.rates = FAIR
        working = asyncio.create_task(stage.leader().backfill(["tricks"], "backfill"))
        await asyncio.sleep(0.02)
        stage.db.epoch = 2
        with pytest.raises(ExceptionGroup) as caught:
            await working
        assert caught.group_contains(FencedOff)
        await stage.embedder.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtual.run(main)


def test_requests_are_done_whatever_they_ask_for() -> None:
    """A source that nobody watches, rows that are none, and after them a sensible one: the leader lives and answers."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        stage.put(document(1, "Ollie", "pop"), told=False)
        odd: list[dict[str, object]] = [
            {},
            {"sources": 7, "keys": "x"},
            {"sources": ["nobody"], "keys": [{"id": 1}, 3]},
        ]
        for number, arguments in enumerate(odd):
            for kind in ("backfill", "look", "forget", "dance"):
                name = f"{number} {kind}"
                stage.db.requests[name] = Request(name, kind, arguments)
        keys = [{"source": "nobody", "id": 1}, {"source": "tricks", "id": 1}]
        stage.db.requests["last"] = Request("last", "look", {"keys": keys})
        await asyncio.sleep(10)
        assert stage.db.results.keys() == stage.db.requests.keys()
        assert stage.texts(1) == ["Ollie: pop"]
        stop.set()
        await serving

    virtual.run(main)


def test_what_expires_is_removed_without_any_write() -> None:
    """Within seconds; one that nobody can shape any more is tried once, not for ever, and hides no other."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        soon = stage.now() + timedelta(seconds=30)
        for number in range(4):
            stage.put(document(number, "Jam", str(number), ends=soon), told=False)
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(20)
        for number in range(3):
            stage.put(document(number, "Jam", str(number), ends=soon, poison="shape"))
        await asyncio.sleep(600)
        assert [len(stage.texts(number)) for number in range(4)] == [1, 1, 1, 0]
        assert {letter.tries for letter in stage.db.letters.values()} == {2}
        stop.set()
        await serving

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("worker.pipeline.duties.PAGE", 1)
        virtual.run(main)


class Stuck(SimClient):
    """Never answers about one text."""

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Vectors, or nothing for ever."""
        if any("stuck" in text for text in texts):
            await asyncio.Event().wait()
        return await super().embed(texts, purpose)


def test_a_backlog_behind_a_stuck_head_takes_no_room() -> None:
    """One document waits for its vector for ever, and an hour of changes passes it: what is held does not grow.

    The stored position stays in front of the stuck one, and the next start reads on from there (B10).
    """

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        embedder = BatchingEmbedder(Stuck(stage.weather), WordCounter(), Limits(), stage.around)
        stage.world = replace(stage.world, embedder=embedder)
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        stage.put(document(0, "Ollie", "stuck"))
        await asyncio.sleep(5)
        stuck = len(stage.db.history)
        for turn in range(3600):
            for number in range(1, 6):
                stage.put(document(number, "Ollie", f"{turn}"))
            await asyncio.sleep(1)
        assert stage.meter.came_in == 1 + 5 * 3600
        gc.collect()
        assert sum(isinstance(one, Ticket) for one in gc.get_objects()) <= 20
        assert stage.db.checkpoint is not None
        assert stage.db.place(stage.db.checkpoint.position) < stuck
        serving.cancel()
        await asyncio.wait({serving})
        await embedder.close()
        stage.world = replace(stage.world, embedder=stage.embedder)
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(60)
        assert stage.wrong() == []
        stop.set()
        await serving

    virtual.run(main)


def test_debts_of_unwatched_sources_harm_nobody() -> None:
    """What was stored when more sources were watched stays as it is."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        other = LedgerRow(trick(1).of("riders", 1), stage.db.now(), expires_at=stage.now(), stale_since=stage.db.now())
        stage.db.ledger[other.key] = other
        stage.db.documents["riders"] = {}
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(20)
        assert not serving.done()
        assert stage.db.ledger[other.key] == other
        stop.set()
        await serving

    virtual.run(main)
