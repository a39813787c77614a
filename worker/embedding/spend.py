"""The day's money for embedding: counted before it is spent, corrected afterwards, and never more than the budget.

A call first reserves what it will cost in the database, and is made only when that fits; afterwards the reservation
becomes what the provider reports. A worker that is killed between the two leaves its reservation standing, so the day
may be counted a little too high, never too low. The day is UTC's, by the clock that is passed in.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Final

from brain.knowledge.embedding import Usage
from worker.errors import (
    BudgetSpent,
    ConfigurationFault,
    FencedOff,
    KnowledgeError,
    NotSent,
    Poison,
    Refused,
    Throttled,
    Unavailable,
)
from worker.model import Leadership, Reservation
from worker.pipeline.around import Around
from worker.ports import SpendBook

Price = Callable[[str, int], float | None]
"""Dollars of so many tokens of a model; None when nobody knows."""

REASON: Final = "embedding_budget"

LOOK_SOON: Final = 1.0
"""Seconds between two looks while calls are on their way: they may turn out cheaper than what was reserved for them."""

LOOK_EVERY: Final = 60.0
"""Seconds between two looks at the clock while the budget is spent: it may be set right meanwhile."""

SMALLEST: Final = 256
"""Tokens that a call is believed to be charged for at least: a provider rounds up, and a word's price is no rate."""

_FREE: Final = (NotSent, Throttled, Unavailable, Poison, Refused, ConfigurationFault)
"""Failures that cost nothing: nothing was sent, or the provider answered with an error."""


def cost_of(usage: Usage, model: str, tokens: int, price: Price) -> float:
    """Dollars of an answered call: as reported, else by the price table; 0 where neither knows."""
    once = usage.cost_usd if usage.cost_usd is not None else price(model, usage.tokens or tokens) or 0.0
    return 2 * once if usage.twice else once


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted of one UTC day."""

    day: str
    usd: float


class Purse:
    """One day's budget after the other; every embedder of a process pays from the same one."""

    def __init__(self, daily_usd: float, price: Price, book: SpendBook, around: Around) -> None:
        self._daily_usd = daily_usd
        self._price = price
        self._book = book
        self._around = around
        self._leadership: Leadership | None = None
        # When generations change, the next purse goes on under the same epoch, and what was cut off stays open.
        self._mark = f"{around.rng.getrandbits(32):08x}"
        self._reservations = self._waiting = self._on_their_way = 0
        self._dearest: dict[str, float] = {}
        self._counted = Counted("", 0.0)
        around.meter.budget_left(self.left)

    def left(self) -> float:
        """Dollars that may still be spent today, as far as this process knows."""
        today = utc_day(self._around.clock.now())
        return self._daily_usd - (self._counted.usd if self._counted.day == today else 0.0)

    async def open(self) -> None:
        """Look at what is counted already today."""
        today = utc_day(self._around.clock.now())
        self._counted = Counted(today, await self._book.counted(today))

    def led_by(self, leadership: Leadership) -> None:
        """From now on this process spends under that leadership."""
        self._leadership = leadership

    async def reserve(self, model: str, tokens: int) -> Reservation | None:
        """Count what a call will cost, or wait for the next day; None for a call that costs nothing.

        Raises BudgetSpent in a command, which does not wait for a day; FencedOff when another process leads;
        ConfigurationFault for a model whose price nobody knows.
        """
        listed = self._price(model, tokens)
        if listed is None:
            message = (
                f"the price of {model} is not known, so that no budget can be kept: set WORKER_USD_PER_MILLION_TOKENS, "
                "or remove WORKER_DAILY_BUDGET_USD"
            )
            raise ConfigurationFault(message)
        usd = max(listed, self._dearest.get(model, 0.0) * max(tokens, SMALLEST))
        if usd <= 0:
            return None
        if (reservation := await self._reserved(usd)) is None:
            reservation = await self._wait_for(usd)
        return reservation

    async def _wait_for(self, usd: float) -> Reservation:
        """Until the day has so much left, or another day begins; not ready as long as anybody waits."""
        self._waiting += 1
        try:
            while True:
                words = (
                    f"today's budget of {self._daily_usd:g} USD is spent ({self._counted.usd:.4f} counted): nothing is "
                    "embedded until 00:00 UTC; raise WORKER_DAILY_BUDGET_USD and restart to go on now"
                )
                if self._around.patience is not None:
                    raise BudgetSpent(words)
                self._around.health.pause(REASON, words)
                look = LOOK_SOON if self._on_their_way else LOOK_EVERY
                await self._around.clock.sleep(min(look, _until_midnight(self._around.clock.now())))
                if reservation := await self._reserved(usd):
                    return reservation
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._around.health.resume(REASON)

    async def settle(self, reservation: Reservation | None, usd: float, model: str, tokens: int) -> None:
        """The call was answered and cost so much; a provider that is dearer than the table is believed from now on."""
        if usd > (self._price(model, tokens) or 0.0):
            self._dearest[model] = max(self._dearest.get(model, 0.0), usd / max(tokens, SMALLEST))
        if reservation is not None:
            await self._correct(reservation, usd)

    async def failed(self, reservation: Reservation | None, error: KnowledgeError) -> None:
        """The call failed: what may have been charged all the same stays counted."""
        if reservation is not None:
            await self._correct(reservation, 0.0 if isinstance(error, _FREE) else reservation.usd)

    async def _reserved(self, usd: float) -> Reservation | None:
        leader, persist = self._led(), self._around.persist
        self._reservations += 1
        name = f"{leader.epoch}-{self._mark}-{self._reservations}"
        wanted = Reservation(utc_day(self._around.clock.now()), name, usd)
        fits = await persist("database", lambda: self._book.reserve(wanted, self._daily_usd, leader))
        if not fits:
            self._counted = Counted(wanted.day, await persist("database", lambda: self._book.counted(wanted.day)))
            return None
        self._count(wanted.day, usd)
        self._on_their_way += 1
        return wanted

    async def _correct(self, reservation: Reservation, usd: float) -> None:
        leader = self._led()
        self._on_their_way -= 1
        await self._around.persist("database", lambda: self._book.settle(reservation, usd, leader))
        if reservation.day == self._counted.day:
            self._count(reservation.day, usd - reservation.usd)

    def _count(self, day: str, usd: float) -> None:
        before = self._counted if self._counted.day == day else Counted(day, 0.0)
        self._counted = replace(before, usd=before.usd + usd)

    def _led(self) -> Leadership:
        if self._leadership is None:
            message = "a budget is spent by the leader alone, and this process does not lead"
            raise FencedOff(message)
        return self._leadership


def utc_day(now: datetime) -> str:
    """The day that money is counted on, as an ISO date."""
    return now.astimezone(UTC).date().isoformat()


def _until_midnight(now: datetime) -> float:
    tomorrow = now.astimezone(UTC).date() + timedelta(days=1)
    return max(1.0, (datetime.combine(tomorrow, time(), UTC) - now).total_seconds())
