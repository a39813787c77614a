"""Who changes the generations in a simulation, as operators do: by requests, at any moment but for a switch."""

import asyncio
from random import Random

from brain.knowledge.pin import Pin
from tests.support.sim_database import Database
from tests.support.sim_source import OTHERS
from tests.support.virtual import VirtualClock
from worker.generations import Act, new_pin, order
from worker.model import Request


class Regenerator:
    """Leaves requests of the kind `pin`."""

    def __init__(self, database: Database, rng: Random) -> None:
        self._db = database
        self._rng = rng
        self._clock = VirtualClock()
        self._busy = rng.random() < 0.6  # in the other seeds one generation lives, and nobody knows of others

    async def change(self, until: float) -> None:
        """Build, drop and roll back now and then until that time."""
        while self._busy and self._clock.monotonic() < until:
            await asyncio.sleep(self._rng.uniform(0.0, 6.0))
            generations = self._db.generations
            if generations.beside is None:
                pin = new_pin(self._rng.choice(OTHERS), self._clock.now())
                self._ask("build", pin)
            elif generations.role == "previous" and self._rng.random() < 0.5:
                self._ask("rollback", generations.beside)
            elif self._rng.random() < 0.3:
                self._ask("drop", generations.beside)

    def switch(self) -> bool:
        """Ask for a switch to the next generation, which was found right; whether there is one."""
        generations = self._db.generations
        if generations.beside is None or generations.role != "next":
            return False
        self._ask("switch", generations.beside)
        return True

    def _ask(self, act: Act, pin: Pin) -> None:
        number = str(len(self._db.requests))
        self._db.requests[number] = Request(number, "pin", order(act, pin, self._db.generations.turn))
