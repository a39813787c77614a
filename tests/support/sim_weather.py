"""What goes wrong in a simulation, and how often: drawn once a seed, so that each seed has its own climate."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from worker.errors import Conflict, Retryable, Unreachable

T = TypeVar("T")


def dice(name: str) -> Random:
    """A source of chance of its own, the same for the same name."""
    return Random(name)  # noqa: S311 - a simulation must be repeatable


@dataclass(frozen=True, slots=True)
class Rates:
    """Chances a call (0 to 1), and the longest ordinary wait in seconds."""

    read: float
    write_lost: float
    write_unanswered: float
    stream: float
    replay: float
    forget: float
    embed: float
    crash: float
    latency: float

    @classmethod
    def draw(cls, rng: Random) -> "Rates":
        """One climate: most faults are absent in some seeds and common in others."""

        def rate(most: float) -> float:
            return rng.choice((0.0, most / 10, most / 3, most)) * rng.random()

        return cls(
            read=rate(0.2),
            write_lost=rate(0.3),
            write_unanswered=rate(0.3),
            stream=rate(0.3),
            replay=rate(0.5),
            forget=rate(0.05),
            embed=rate(0.6),
            crash=rate(0.02),
            latency=rng.choice((0.0, 0.01, 0.3)),
        )


class Weather:
    """Decides, call by call; once `calm`, nothing goes wrong any more."""

    def __init__(self, rng: Random, rates: Rates) -> None:
        self.rng = rng
        self.rates = rates
        self.calm = False

    def strikes(self, rate: float) -> bool:
        """Whether it happens this time."""
        return not self.calm and rate > 0 and self.rng.random() < rate

    async def wait(self) -> None:
        """The time that a call takes."""
        longest = self.rates.latency
        await asyncio.sleep(self.rng.random() * longest if longest and not self.calm else 0.001)

    async def read(self, answer: Callable[[], T]) -> T:
        """A call that changes nothing: its answer is of some moment between its start and its end."""
        await self.wait()
        if self.strikes(self.rates.read):
            raise self.fault()
        result = answer()
        await self.wait()
        return result

    async def write(self, effect: Callable[[], T]) -> T:
        """A call that changes something: it may fail before, or after it took effect."""
        await self.wait()
        if self.strikes(self.rates.write_lost):
            raise self.fault()
        result = effect()
        await self.wait()
        if self.strikes(self.rates.write_unanswered):
            message = "the write took effect and nobody said so"
            raise Unreachable(message)
        return result

    def fault(self) -> Retryable:
        """Something that may be tried again."""
        message = "nothing happened"
        return self.rng.choice((Conflict, Unreachable))(message)
