"""The coalescer, case by case, in virtual time."""

import asyncio
from collections.abc import Callable

from bson import Timestamp

from tests.support import virtual
from worker.model import Change, DocKey, Origin
from worker.pipeline.coalesce import Coalescer, Received, Work

A, B, C = (DocKey.of("tricks", name) for name in "abc")
WINDOW = 0.3


def nothing() -> None:
    """Nobody waits for it."""


def received(
    key: DocKey, origin: Origin = "stream", at: int | None = None, settled: Callable[[], None] = nothing
) -> Received:
    """A change of a document."""
    return Received(Change(key, origin, None if at is None else Timestamp(at, 0)), settled)


def make(capacity: int = 100) -> Coalescer:
    """A coalescer on the virtual clock."""
    return Coalescer(virtual.VirtualClock(), WINDOW, capacity)


def elapsed(since: float) -> float:
    """Virtual seconds."""
    return round(asyncio.get_running_loop().time() - since, 6)


def test_a_change_of_the_stream_waits_one_window() -> None:
    """All changes of one document within the window are one work, oldest first, that starts when the window ends."""

    async def main() -> None:
        coalescer, start = make(), virtual.START
        for at in (1, 3, 2):
            await coalescer.put(received(A, at=at))
            await asyncio.sleep(0.1)
        (work,) = await coalescer.take(10)
        assert elapsed(start) == WINDOW
        assert [r.change.at for r in work.received] == [Timestamp(1, 0), Timestamp(3, 0), Timestamp(2, 0)]
        assert work.after == Timestamp(3, 0)

    virtual.run(main)


def test_what_is_not_urgent_waits_for_nothing_but_the_stream() -> None:
    """A scan's documents are handed out at once; due changes of the stream come before them."""

    async def main() -> None:
        coalescer = make()
        await coalescer.put(received(A, "scan"))
        assert [work.key for work in await coalescer.take(10)] == [A]
        await coalescer.put(received(B))
        await coalescer.put(received(C, "scan"))
        await asyncio.sleep(WINDOW)
        assert [work.key for work in await coalescer.take(1)] == [B]
        assert [work.key for work in await coalescer.take(1)] == [C]

    virtual.run(main)


def test_a_pump_for_the_stream_alone_takes_nothing_else() -> None:
    """It leaves a scan's documents, and wakes for an event."""

    async def main() -> None:
        coalescer = make()
        await coalescer.put(received(A, "scan"))
        taking = asyncio.create_task(coalescer.take(10, urgent_only=True))
        await asyncio.sleep(5)
        assert not taking.done()
        await coalescer.put(received(B))
        assert [work.key for work in await taking] == [B]
        assert [work.key for work in await coalescer.take(10)] == [A]

    virtual.run(main)


def test_an_event_makes_a_patient_document_urgent() -> None:
    """It keeps what it already owed: one work answers both."""

    async def main() -> None:
        coalescer, start = make(), virtual.START
        await coalescer.put(received(A, "scan"))
        await coalescer.put(received(A, at=7))
        (work,) = await coalescer.take(10)
        assert elapsed(start) == WINDOW
        assert [r.change.origin for r in work.received] == ["scan", "stream"]

    virtual.run(main)


def test_a_busy_document_is_not_handed_out_again() -> None:
    """What comes in meanwhile is held, handed out once after the release, and settled by its own work alone."""

    async def main() -> None:
        coalescer, settled = make(), list[str]()
        await coalescer.put(received(A, settled=lambda: settled.append("first")))
        (first,) = await coalescer.take(10)
        await coalescer.put(received(A, settled=lambda: settled.append("second")))
        await coalescer.put(received(A, "scan", settled=lambda: settled.append("third")))
        taking = asyncio.create_task(coalescer.take(10))
        await asyncio.sleep(5)
        assert not taking.done()
        assert coalescer.inside("tricks") == [A]
        await coalescer.release([first])
        assert settled == ["first"]
        (second,) = await taking
        assert len(second.received) == 2
        await coalescer.release([second])
        assert settled == ["first", "second", "third"]
        assert (coalescer.unsettled, coalescer.waiting, coalescer.inside("tricks")) == (0, 0, [])

    virtual.run(main)


def test_a_full_coalescer_makes_the_next_one_wait() -> None:
    """Its capacity counts changes, not documents; room for two lets two in, whoever waits."""

    async def main() -> None:
        coalescer = make(capacity=2)
        await coalescer.put(received(A))
        await coalescer.put(received(A))
        putting = [asyncio.create_task(coalescer.put(received(key))) for key in (A, B, C)]
        await asyncio.sleep(5)
        assert [task.done() for task in putting] == [False, False, False]
        await coalescer.release(await coalescer.take(10))
        await asyncio.sleep(1)
        assert [task.done() for task in putting] == [True, True, False]
        assert coalescer.unsettled == 2
        await coalescer.release(await coalescer.take(10))
        await putting[2]

    virtual.run(main)


def test_one_who_gives_up_waiting_for_room_takes_none() -> None:
    """A cancelled put leaves no trace."""

    async def main() -> None:
        coalescer = make(capacity=1)
        await coalescer.put(received(A))
        putting = asyncio.create_task(coalescer.put(received(B)))
        await asyncio.sleep(1)
        putting.cancel()
        await coalescer.release(await coalescer.take(10))
        await coalescer.drained()
        assert coalescer.inside("tricks") == []

    virtual.run(main)


def test_two_takers_never_share_a_document() -> None:
    """Several pumps wait; each document goes to one of them, and nobody misses a wake-up."""

    async def main() -> None:
        coalescer, taken = make(), list[DocKey]()

        async def pump() -> None:
            while True:
                works = await coalescer.take(1)
                taken.extend(work.key for work in works)
                await asyncio.sleep(0.05)
                await coalescer.release(works)

        pumps = [asyncio.create_task(pump()) for _ in range(3)]
        keys = [DocKey.of("tricks", number) for number in range(20)]
        for key in keys:
            await coalescer.put(received(key))
        await coalescer.drained()
        for task in pumps:
            task.cancel()
        assert sorted(taken, key=str) == sorted(keys, key=str)

    virtual.run(main)


def test_a_read_without_events_may_be_of_any_time() -> None:
    """`after` is the newest event's time, and None for a scan alone."""
    assert Work(A, (received(A, "scan"),)).after is None
    assert Work(A, (received(A, "scan"), received(A, at=4))).after == Timestamp(4, 0)


def test_what_was_put_back_is_seen_until_it_changes() -> None:
    """It waits for the pumps with all that it owes, and is unseen again when something new comes."""

    async def main() -> None:
        coalescer = make()
        await coalescer.put(received(A, at=1))
        await coalescer.put(received(B, at=2))
        assert coalescer.take_unseen(10) == []
        await asyncio.sleep(WINDOW)
        works = coalescer.take_unseen(10)
        assert [work.key for work in works] == [A, B]
        await coalescer.put(received(B, at=3))
        coalescer.put_back(works)
        (work,) = coalescer.take_unseen(10)
        assert (work.key, len(work.received)) == (B, 2)
        coalescer.put_back([work])
        assert coalescer.take_unseen(10) == []
        await coalescer.put(received(A, at=4))
        assert [work.key for work in coalescer.take_unseen(10)] == [A]
        assert [work.key for work in await coalescer.take(10)] == [B]
        assert (coalescer.unsettled, coalescer.waiting) == (4, 0)

    virtual.run(main)
