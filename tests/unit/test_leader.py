"""The leader as a whole: its begin, its one-shot works, its end."""

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest

from brain.knowledge.embedding import Embedded, Purpose
from tests.support import virtual
from tests.support.sim_oracle import differences
from tests.support.sim_ports import SimCheckpoints, SimLease, SimPins
from tests.support.sim_source import SimClient, WordCounter
from tests.support.sim_stage import FAIR, TIPS, TRICKS, Stage, document, trick
from tests.support.sim_weather import Weather, dice
from worker.embedding.batcher import BatchingEmbedder, Limits
from worker.errors import FencedOff, GenerationsChanged, LeaseGone, NothingPinned, Unreachable
from worker.generations import Generations
from worker.model import Checkpoint, DocKey, Leadership, LedgerRow, Request, Scan, SourceArrived, SourceGone
from worker.pipeline.leader import LAST_WORDS, Farewell
from worker.pipeline.shape import T
from worker.pipeline.watermark import Ticket


def wrong(stage: Stage) -> list[str]:
    """What differs from f(documents)."""
    return differences(stage.db, {"tricks": TRICKS}, stage.now())


class Lossy(Weather):
    """Fair, until writes stop to arrive."""

    def __init__(self) -> None:
        super().__init__(dice("lossy"), FAIR)
        self.refuses: Callable[[], bool] = lambda: False

    async def write(self, effect: Callable[[], T]) -> T:
        """Fail, or take effect."""
        if self.refuses():
            raise self.fault()
        return await super().write(effect)


class Dropped(SimLease):
    """A lease whose database is dropped at some time."""

    dropped = False

    async def renew(self, leadership: Leadership) -> None:
        """As long as it is there."""
        if self.dropped:
            message = "the lease is gone"
            raise LeaseGone(message)
        await super().renew(leadership)


class Unpinned(SimPins):
    """No generation lives."""

    async def load(self) -> Generations:
        """There is none."""
        message = "nothing is pinned"
        raise NothingPinned(message)


class Late(SimCheckpoints):
    """Stores no position for a while."""

    def __init__(self, stage: Stage, seconds: float) -> None:
        super().__init__(stage.db, stage.weather)
        self._clock = stage.clock
        self._until = stage.clock.monotonic() + seconds

    async def save(self, checkpoint: Checkpoint, leadership: Leadership) -> None:
        """Not yet, or store it."""
        if self._clock.monotonic() < self._until:
            message = "not yet"
            raise Unreachable(message)
        await super().save(checkpoint, leadership)


def test_no_scan_keeps_a_place_before_the_first_position_is_stored() -> None:
    """Else a crash goes on behind changes that nobody saw: the place is durable, and the next position a later one."""

    async def main() -> None:
        stage = Stage()
        stage.papers = replace(stage.papers, checkpoints=Late(stage, 20))
        stage.world = replace(stage.world, papers=stage.papers)
        for number in range(3):
            stage.put(document(number, "Ollie", str(number)), told=False)
        serving = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(10)
        assert stage.db.scans == {"tricks": Scan("tricks", "first", stage.db.scans["tricks"].shape, done=False)}
        stage.put(document(0, "Ollie", "edited"))
        serving.cancel()
        await asyncio.wait({serving})
        serving = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(120)
        assert wrong(stage) == []
        serving.cancel()
        await asyncio.wait({serving})

    virtual.run(main)


def test_without_a_position_everything_is_scanned_again() -> None:
    """Whoever removed it: nobody knows since when changes were missed, so scans that were done count no longer."""

    async def main() -> None:
        stage = Stage()
        stage.put(document(1, "Ollie", "pop"), told=False)
        stage.db.scans["tricks"] = Scan("tricks", "first", "any", done=True, finished_at=stage.now())
        stop = asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        assert wrong(stage) == []
        stop.set()
        await serving

    virtual.run(main)


def test_a_stop_finishes_what_is_in_hand_and_stores_the_last_position() -> None:
    """What was told before the stop is stored, and the position is behind it: the next start reads none of it again."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        stage.put(document(1, "Ollie", "pop"))
        await asyncio.sleep(0.1)
        stop.set()
        await serving
        assert stage.texts(1) == ["Ollie: pop"]
        assert stage.db.checkpoint is not None
        assert stage.db.place(stage.db.checkpoint.position) == len(stage.db.history)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    virtual.run(main)


def test_a_stop_does_not_wait_for_a_scan() -> None:
    """What a scan has put out and nobody has begun is left: its place is kept, and what was told is finished."""

    async def main() -> None:
        stage, stop = Stage(), asyncio.Event()
        for number in range(2000):
            stage.put(document(number, "Ollie", str(number)), told=False)
        stage.client.seconds = 2.0
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(15)
        stage.put(document(1999, "Ollie", "edited"))
        await asyncio.sleep(0.1)
        began = stage.clock.monotonic()
        stop.set()
        farewell = await serving
        assert stage.clock.monotonic() - began < 8
        assert stage.texts(1999) == ["Ollie: edited"]
        assert 500 < farewell.left < 1500
        assert farewell.stored
        assert stage.meter.came_in == stage.meter.outcomes.total() + farewell.left

    virtual.run(main)


def test_a_stop_at_the_beginning_is_prompt() -> None:
    """The database is not there when the leadership begins: nothing is in hand, so nothing is waited for."""

    async def main() -> None:
        stage, stop = Stage(weather=Weather(dice("dead"), replace(FAIR, read=1.0))), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(60)
        assert "database" in stage.health.reasons
        stop.set()
        await asyncio.sleep(0.5)
        assert serving.done()
        assert stage.health.reasons == {}

    virtual.run(main)


def test_one_that_is_fenced_off_ends_and_leaves_no_task() -> None:
    """Within the time between two renewals, whatever it was doing."""

    async def main() -> None:
        stage = Stage()
        serving = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(5)
        stage.db.epoch = 2
        await asyncio.wait({serving}, timeout=4)
        with pytest.raises(ExceptionGroup) as caught:
            serving.result()
        assert caught.group_contains(FencedOff)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert stage.health.reasons == {}

    virtual.run(main)


def test_one_whose_lease_is_gone_leaves_nothing_in_hand() -> None:
    """The process goes on with another leader, and its figures with it: what had no outcome has one now."""

    async def main() -> None:
        stage = Stage()
        lease = Dropped(stage.db, stage.weather)
        stage.world = replace(stage.world, papers=replace(stage.papers, lease=lease))
        serving = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(5)
        for number in range(3):
            stage.put(document(number, "Ollie", str(number)))
        await asyncio.sleep(0.1)
        assert (stage.meter.came_in, stage.meter.outcomes.total()) == (3, 0)
        lease.dropped = True
        await asyncio.wait({serving}, timeout=0.1)
        with pytest.raises(ExceptionGroup) as caught:
            serving.result()
        assert caught.group_contains(LeaseGone)
        assert stage.meter.outcomes == {"superseded": 3}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with patch("worker.pipeline.duties.RENEW_EVERY", 0.01):
        virtual.run(main)


def test_one_that_finds_nothing_pinned_begins_again() -> None:
    """The database was dropped while it stood by: the pin is made where a leader is put together."""

    async def main() -> None:
        stage = Stage()
        papers = replace(stage.papers, pins=Unpinned(stage.db, stage.weather))
        stage.world = replace(stage.world, papers=papers)
        with pytest.raises(GenerationsChanged):
            await stage.leader().serve(asyncio.Event())

    virtual.run(main)


def test_a_backfill_scans_its_source_and_ends() -> None:
    """Without the stream; orphans go, debts are paid, and nothing runs on."""

    async def main() -> None:
        stage = Stage()
        stage.put(document(1, "Ollie", "pop", links=(2,)), told=False)
        stage.put(document(2, "Pop", "x"), told=False)
        stage.db.ledger[trick(9)] = LedgerRow(trick(9), stage.db.now(), face="Gone")
        await stage.leader().backfill(["tricks"], "backfill")
        assert wrong(stage) == []
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


async def begin_a_long_scan(stage: Stage, stop: asyncio.Event) -> "asyncio.Task[Farewell]":
    """Lead with 30 tips stored, and in the middle of a scan of tricks that takes minutes yet."""
    stage.db.documents["tips"] = {DocKey.of("tips", n): document(n, "Tip", str(n)) for n in range(30)}
    serving = asyncio.create_task(stage.leader().serve(stop))
    await asyncio.sleep(10)
    assert len(tips_stored(stage)) == 30
    for number in range(1000):
        stage.put(document(number, "Ollie", str(number)), told=False)
    stage.client.seconds = 10.0
    stage.db.requests["1"] = Request("1", "backfill", {"sources": ["tricks"]})
    await asyncio.sleep(45)
    assert stage.db.scans["tricks"].after is not None
    return serving


def tips_stored(stage: Stage) -> list[DocKey]:
    """The tips that have chunks."""
    return [key for key, rows in stage.db.chunks.items() if key.source == "tips" and rows]


@pytest.mark.parametrize("operation", ["drop", "rename", "dropDatabase"])
def test_a_drop_is_not_kept_waiting_by_a_scan(operation: str) -> None:
    """The chunks of the dropped collection are gone in seconds; the scan that ran goes on where it was."""

    async def main() -> None:
        stage, stop = Stage(sources=(TRICKS, TIPS)), asyncio.Event()
        serving = await begin_a_long_scan(stage, stop)
        stage.db.documents["tips"].clear()
        stage.db.record(SourceGone(("tips",), operation))
        await asyncio.sleep(2)
        assert tips_stored(stage) == []
        assert not stage.db.scans["tricks"].done
        await asyncio.sleep(600)
        assert differences(stage.db, {"tricks": TRICKS, "tips": TIPS}, stage.now()) == []
        assert stage.client.sent.count("Ollie: 1") == 1
        stop.set()
        await serving

    with patch("worker.pipeline.scan.AHEAD", 100):
        virtual.run(main)


def test_a_drop_that_a_crash_interrupts_goes_first_at_the_next_start() -> None:
    """Killed when the drop was noted and nothing done: both scans keep their places, and the removal is at once."""

    async def main() -> None:
        stage, stop = Stage(sources=(TRICKS, TIPS)), asyncio.Event()
        serving = await begin_a_long_scan(stage, stop)
        stage.db.documents["tips"].clear()
        stage.db.record(SourceGone(("tips",), "drop"))
        await asyncio.sleep(0.1)
        assert stage.db.scans["tips"].reason == "drop"
        serving.cancel()
        await asyncio.wait({serving})
        assert len(tips_stored(stage)) == 30
        place = stage.db.scans["tricks"]
        assert place.after is not None
        stage.db.requests["1"] = replace(stage.db.requests["1"], again=True)
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(2)
        assert tips_stored(stage) == []
        assert stage.db.scans["tricks"].started_at == place.started_at
        assert stage.db.scans["tricks"].seen >= place.seen
        await asyncio.sleep(600)
        assert differences(stage.db, {"tricks": TRICKS, "tips": TIPS}, stage.now()) == []
        stop.set()
        await serving

    with patch("worker.pipeline.scan.AHEAD", 100):
        virtual.run(main)


def test_a_scan_that_only_makes_sure_lets_an_urgent_one_pass() -> None:
    """A collection that is renamed in is scanned before the rest of a backfill, which then goes on at its place."""

    async def main() -> None:
        stage, stop = Stage(sources=(TRICKS, TIPS)), asyncio.Event()
        serving = await begin_a_long_scan(stage, stop)
        stage.db.documents["tips"] = {DocKey.of("tips", n): document(n, "New", str(n)) for n in range(30, 40)}
        stage.db.record(SourceArrived("tips"))
        await asyncio.sleep(60)
        assert set(tips_stored(stage)) == set(stage.db.documents["tips"])
        assert not stage.db.scans["tricks"].done
        await asyncio.sleep(600)
        assert differences(stage.db, {"tricks": TRICKS, "tips": TIPS}, stage.now()) == []
        assert stage.db.scans["tricks"].seen == 1000
        assert stage.db.results["1"] == {"sources": ["tricks"]}
        stop.set()
        await serving

    with patch("worker.pipeline.scan.AHEAD", 100):
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
        assert wrong(stage) == []
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


def test_a_drain_is_bounded() -> None:
    """While the database takes no writes a stop ends the pumps after its time, and what is left is told again."""

    async def main() -> None:
        weather = Lossy()
        stage, stop = Stage(weather=weather), asyncio.Event()
        serving = asyncio.create_task(stage.leader().serve(stop))
        await asyncio.sleep(5)
        assert stage.db.checkpoint is not None
        before = stage.db.checkpoint.position
        weather.refuses = lambda: True
        stage.put(document(1, "Ollie", "pop"))
        await asyncio.sleep(1)
        stop.set()
        began = stage.clock.monotonic()
        farewell = await serving
        assert stage.clock.monotonic() - began <= 10 + LAST_WORDS + 1
        assert (farewell.left, farewell.stored) == (1, True)  # the position has not moved, so it is stored already
        assert stage.db.checkpoint.position.at == before.at
        weather.refuses = lambda: False
        again = asyncio.create_task(stage.leader().serve(asyncio.Event()))
        await asyncio.sleep(5)
        assert stage.texts(1) == ["Ollie: pop"]
        again.cancel()
        await asyncio.wait({again})

    virtual.run(main)
