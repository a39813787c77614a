"""Dead letters are told of."""

import logging
from collections.abc import Sequence

import pytest
from bson import Timestamp

from tests.support import virtual
from tests.support.sim_recorders import CrashingProbe, SimHealth, SimMeter
from tests.support.sim_stage import FAIR, trick
from tests.support.sim_weather import Weather, dice
from worker.errors import UnreadableDocument
from worker.model import DeadLetter, Delta, DocKey, Leadership
from worker.pipeline.around import Around
from worker.pipeline.dead_letters import Undertaker
from worker.pipeline.embed import Failed


class Letters:
    """Implements DeadLetters, for one."""

    def __init__(self) -> None:
        self.kept: list[DeadLetter] = []

    async def put(self, letter: DeadLetter, leadership: Leadership) -> None:
        """Keep."""
        self.kept.append(letter)

    async def all(self) -> Sequence[DeadLetter]:
        """All."""
        return self.kept

    async def count(self) -> int:
        """How many."""
        return len(self.kept)

    async def drop(self, keys: Sequence[DocKey], leadership: Leadership) -> int:
        """None."""
        return 0


def test_a_burial_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Which document and why, at the time: the metric alone does not say."""

    async def main() -> None:
        probe = CrashingProbe(Weather(dice("w"), FAIR))
        around = Around(virtual.VirtualClock(), SimMeter(), SimHealth(), probe, dice("letters"))
        failure = Failed(Delta(trick(1), Timestamp(5, 0)), UnreadableDocument("more than 2000 chunks"), "00")
        letters = Letters()
        await Undertaker(letters, Leadership(1), around).bury(failure, None)
        assert [letter.key for letter in letters.kept] == [trick(1)]

    virtual.run(main)
    said = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert said == [(logging.WARNING, f"{trick(1)} cannot be processed as it is: more than 2000 chunks")]
