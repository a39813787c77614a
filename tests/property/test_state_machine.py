"""The leader under steps that hypothesis chooses, and shrinks when one of them breaks a promise.

The world and the oracle are those of the seeded simulation; here every fault, edit and crash is a step of its own, so
that a failure is told as the shortest list of them.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.sim_stage import FAIR, document, trick
from tests.support.sim_weather import Rates
from tests.support.simulation import Life, Simulation
from tests.support.virtual import VirtualLoop
from worker.model import DocumentChanged, Request, SourceGone

NUMBERS: Final = st.integers(0, 3)
NAMES: Final = st.sampled_from(("ollie", "kickflip"))
FOUL: Final = Rates(
    read=0.1,
    write_lost=0.1,
    write_unanswered=0.2,
    stream=0.1,
    replay=0.5,
    forget=0.01,
    embed=0.2,
    crash=0.01,
    latency=0.1,
)


class Worker(RuleBasedStateMachine):
    """A leader, its world, and everything that can happen to both."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.sim = Simulation(0)
        self.sim.weather.rates = FAIR
        self.life: Life = self.do(self.sim.begin)

    def do(self, act: Callable[[], Life]) -> Life:
        """One act inside the loop."""

        async def main() -> Life:
            return act()

        return self.runner.run(main())

    def tell(self, act: Callable[[], None]) -> None:
        """One change of the world."""

        async def main() -> None:
            act()

        self.runner.run(main())

    @rule(
        number=NUMBERS,
        name=NAMES,
        words=st.lists(NAMES, max_size=2),
        link=NUMBERS,
        hidden=st.booleans(),
        poison=st.sampled_from((None, None, None, "text", "shape")),
    )
    def write(self, number: int, name: str, words: list[str], link: int, *, hidden: bool, poison: str | None) -> None:
        """Somebody writes a document."""

        def act() -> None:
            self.sim.db.documents["tricks"][trick(number)] = document(
                number, name, *words, links=(link,), hidden=hidden, poison=poison
            )
            self.sim.db.record(DocumentChanged(trick(number), None))

        self.tell(act)

    @rule(number=NUMBERS)
    def delete(self, number: int) -> None:
        """Somebody deletes a document, or tries to."""

        def act() -> None:
            if self.sim.db.documents["tricks"].pop(trick(number), None) is not None:
                self.sim.db.record(DocumentChanged(trick(number), None))

        self.tell(act)

    @rule()
    def drop(self) -> None:
        """Somebody drops the collection."""

        def act() -> None:
            self.sim.db.documents["tricks"].clear()
            self.sim.db.record(SourceGone(("tricks",), "drop"))

        self.tell(act)

    @rule()
    def forget(self) -> None:
        """The history loses everything up to now."""
        self.sim.db.trimmed = len(self.sim.db.history)

    @rule(number=NUMBERS)
    def ask(self, number: int) -> None:
        """Somebody asks for a look."""
        name = str(len(self.sim.db.requests))
        self.sim.db.requests[name] = Request(name, "look", {"keys": [{"source": "tricks", "id": number}]})

    @rule(foul=st.booleans())
    def weather(self, *, foul: bool) -> None:
        """The weather turns."""
        self.sim.weather.rates = FOUL if foul else FAIR

    @rule(seconds=st.sampled_from((0.0, 0.01, 0.1, 0.35, 1.0, 5.0)))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.runner.run(asyncio.sleep(seconds))
        if self.life.task.done():
            self.life.task.result()

    @rule()
    def crash(self) -> None:
        """The process is gone, and another one starts."""
        self.runner.run(self.sim.kill(self.life))
        self.life = self.do(self.sim.begin)

    @precondition(lambda self: not self.life.probe.dead.is_set())
    @rule()
    def restart(self) -> None:
        """The process is asked to stop, and another one starts."""
        self.runner.run(self.sim.stop(self.life))
        self.life = self.do(self.sim.begin)

    @invariant()
    def conserves(self) -> None:
        """Every change that came in has its outcome, or is still inside."""
        self.life.conserved()

    def teardown(self) -> None:
        """In calm all comes right, and a second start finds nothing to do."""
        self.sim.weather.calm = True
        try:
            self.life = self.runner.run(self.sim.come_right(self.life))
            self.runner.run(self.sim.stop(self.life))
            self.runner.run(self.sim.again())
        finally:
            self.runner.close()


class Quick(Worker):
    """For every day."""


class Thorough(Worker):
    """For a long run."""


ALWAYS: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
TestWorker = Quick.TestCase
TestWorker.settings = settings(ALWAYS, max_examples=40, stateful_step_count=25)
TestWorkerThoroughly = pytest.mark.slow(Thorough.TestCase)
TestWorkerThoroughly.settings = settings(ALWAYS, max_examples=300, stateful_step_count=50)
