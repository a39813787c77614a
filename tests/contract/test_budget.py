"""What every book of the day's spending promises: in memory, and in the database over both drivers."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from brain.knowledge.connect import Target
from tests.support.memory_budget import MemoryBudget
from worker.errors import Conflict, FencedOff
from worker.model import Leadership, Reservation
from worker.mongo.budget import MongoBudget
from worker.mongo.driver import connected
from worker.ports import SpendBook

DAY = "2026-11-30"
FIRST, SECOND = Leadership(1), Leadership(2)


@pytest.fixture(params=["memory", "pymongo", "motor"])
async def book(request: pytest.FixtureRequest) -> AsyncGenerator[SpendBook]:
    """Each book in turn."""
    if request.param == "memory":
        yield MemoryBudget()
        return
    target = Target(request.getfixturevalue("mongo_uri"), request.getfixturevalue("database_name"))
    async with connected(target, request.param) as database:
        yield MongoBudget(database)


def reservation(number: int, usd: float, day: str = DAY) -> Reservation:
    """One of the first leader's."""
    return Reservation(day, f"1-{number}", usd)


async def test_a_reservation_counts_and_is_settled(book: SpendBook) -> None:
    """What is on its way counts in full, then what it really cost; each day for itself."""
    assert await book.counted(DAY) == 0.0
    assert await book.reserve(reservation(1, 0.4), 1.0, FIRST)
    assert await book.reserve(reservation(2, 0.4), 1.0, FIRST)
    assert await book.counted(DAY) == pytest.approx(0.8)
    await book.settle(reservation(1, 0.4), 0.1, FIRST)
    assert await book.counted(DAY) == pytest.approx(0.5)
    await book.settle(reservation(2, 0.4), 0.45, FIRST)
    assert await book.counted(DAY) == pytest.approx(0.55)
    assert await book.counted("2026-12-01") == 0.0


async def test_never_more_than_the_limit(book: SpendBook) -> None:
    """The first of a day too; what fits exactly fits."""
    assert not await book.reserve(reservation(1, 1.5), 1.0, FIRST)
    assert await book.reserve(reservation(2, 0.75), 1.0, FIRST)
    assert not await book.reserve(reservation(3, 0.5), 1.0, FIRST)
    assert await book.reserve(reservation(4, 0.25), 1.0, FIRST)
    assert await book.counted(DAY) == 1.0
    assert await book.reserve(reservation(5, 0.5), 2.0, FIRST), "somebody raised it"


async def test_many_at_once_stay_within_it(book: SpendBook) -> None:
    """The comparison and the count are one step, and nobody is refused what fits, in the day's first moment too."""

    async def insist(number: int) -> bool:
        for _ in range(20):
            try:
                return await book.reserve(reservation(number, 0.125), 1.0, FIRST)
            except Conflict:
                continue
        message = "a conflict for ever"
        raise AssertionError(message)

    asked = await asyncio.gather(*(insist(number) for number in range(20)))
    assert sum(asked) == 8
    assert await book.counted(DAY) == 1.0


async def test_what_is_said_twice_counts_once(book: SpendBook) -> None:
    """An answer that was lost is asked for again: neither counts too much, nor, and that is worse, too little."""
    for _ in range(2):
        assert await book.reserve(reservation(1, 0.6), 1.0, FIRST)
    assert await book.counted(DAY) == pytest.approx(0.6)
    for _ in range(2):
        await book.settle(reservation(1, 0.6), 0.2, FIRST)
    assert await book.counted(DAY) == pytest.approx(0.2)


async def test_a_reservation_that_nobody_settles_stays(book: SpendBook) -> None:
    """Its call may have been charged: the next leader goes on from there."""
    assert await book.reserve(reservation(1, 0.6), 1.0, FIRST)
    assert not await book.reserve(Reservation(DAY, "2-1", 0.6), 1.0, SECOND)
    assert await book.counted(DAY) == pytest.approx(0.6)


async def test_a_former_leader_spends_nothing_more(book: SpendBook) -> None:
    """Once the next one has; what it reserved before stays counted."""
    assert await book.reserve(reservation(1, 0.25), 1.0, FIRST)
    assert await book.reserve(Reservation(DAY, "2-1", 0.25), 1.0, SECOND)
    with pytest.raises(FencedOff):
        await book.reserve(reservation(2, 0.25), 1.0, FIRST)
    with pytest.raises(FencedOff):
        await book.settle(reservation(1, 0.25), 0.0, FIRST)
    assert await book.counted(DAY) == pytest.approx(0.5)
