"""The tail: what each step of the stream becomes, and how the stream is opened again."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

import pytest
from bson import Timestamp

from tests.support import virtual
from tests.support.sim_stage import Stage, trick
from worker.errors import HistoryLost, Throttled, Unreachable, WrongTopology
from worker.model import Change, DocumentChanged, Passed, Position, SourceArrived, SourceGone, StreamEvent, StreamItem
from worker.pipeline.intake import Tail

Script = Sequence[Sequence[StreamEvent | Exception]]
START: Final = Position(Timestamp(1, 0))


def position(number: int) -> Position:
    """The position of the n-th event of a script."""
    return Position(Timestamp(1, number), {"n": number})


class Stream:
    """Plays one list of events for each time that it is opened, then idles."""

    def __init__(self, script: Script, log: list[object]) -> None:
        self._script = list(script)
        self._log = log
        self._count = 0
        self.opened: list[tuple[float, Position]] = []

    async def now(self) -> Timestamp:
        """A fixed time; noted."""
        self._log.append("now")
        return Timestamp(77, 0)

    async def clock(self) -> datetime | None:
        """Not told."""
        return None

    async def oldest(self) -> Timestamp | None:
        """Not known."""
        return None

    async def follow(self, position: Position) -> AsyncIterator[StreamItem]:
        """The next list."""
        self.opened.append((asyncio.get_running_loop().time(), position))
        events = self._script.pop(0) if self._script else None
        for event in events or ():
            if isinstance(event, Exception):
                raise event
            self._count += 1
            yield StreamItem(event, Position(Timestamp(1, self._count), {"n": self._count}))
        while events is None:
            await asyncio.sleep(3600)
            yield StreamItem(Passed(), position)


class Inlet:
    """Writes down what comes in."""

    def __init__(self) -> None:
        self.log: list[object] = []
        self.fails = 0

    async def changed(self, change: Change, position: Position) -> None:
        """Note."""
        self.log.append((change.key, change.origin, change.at, position))

    def passed(self, position: Position) -> None:
        """Note."""
        self.log.append(position)

    async def rescan(self, sources: Sequence[str], reason: str) -> None:
        """Note, after as many failures as asked for."""
        if self.fails:
            self.fails -= 1
            message = "not now"
            raise Unreachable(message)
        self.log.append((tuple(sources), reason))


async def play(script: Script, fails: int = 0, seconds: float = 600.0) -> tuple[Inlet, Stream, Stage]:
    """Follow a script for a while."""
    stage, inlet = Stage(), Inlet()
    stream = Stream(script, inlet.log)
    inlet.fails = fails
    following = asyncio.create_task(Tail(stream, ["tricks", "tips"], inlet, stage.around).follow(START))
    await asyncio.wait({following}, timeout=seconds)
    if following.done():
        following.result()
    following.cancel()
    await asyncio.wait({following})
    return inlet, stream, stage


def test_every_step_comes_in_with_its_position() -> None:
    """A change at its own time; a drop and an arrival as a scan first, and as passed when that is durable."""

    async def main() -> None:
        events = [
            DocumentChanged(trick(1), None),
            Passed("createIndexes"),
            SourceGone(("tricks",), "drop"),
            SourceArrived("tips"),
            SourceArrived("tips", gone="tricks"),
        ]
        inlet, _, _ = await play([events], fails=2)
        assert inlet.log == [
            (trick(1), "stream", Timestamp(1, 1), position(1)),
            position(2),
            (("tricks",), "drop"),
            position(3),
            (("tips",), "renamed_in"),
            position(4),
            (("tips", "tricks"), "renamed_in"),
            position(5),
        ]

    virtual.run(main)


def test_a_broken_stream_is_opened_again_from_the_last_step() -> None:
    """Within bounds of the backoff, not ready meanwhile, ready again with the first step."""

    async def main() -> None:
        broken = [DocumentChanged(trick(1), None), Unreachable("gone")]
        _, stream, stage = await play([broken, [Unreachable("still")], [Passed()]], seconds=30)
        assert [at for _, at in stream.opened] == [START, position(1), position(1), position(2)]
        assert stream.opened[2][0] - stream.opened[0][0] < 0.5 + 1.0
        assert stage.health.reasons == {}

    virtual.run(main)


def test_it_waits_as_long_as_it_is_asked_to() -> None:
    """`retry_after` beats the backoff."""

    async def main() -> None:
        _, stream, _ = await play([[Throttled("slowly", retry_after=42.0)]])
        assert stream.opened[1][0] - stream.opened[0][0] == pytest.approx(42.0)

    virtual.run(main)


def test_lost_history_starts_over_at_the_present() -> None:
    """The position is taken first, then every source is noted for a scan, then the stream is opened there."""

    async def main() -> None:
        inlet, stream, _ = await play([[DocumentChanged(trick(1), None), HistoryLost("gone")]])
        assert inlet.log[1:] == ["now", (("tricks", "tips"), "history_lost"), Position(Timestamp(77, 0))]
        assert stream.opened[1][1] == Position(Timestamp(77, 0))

    virtual.run(main)


@pytest.mark.parametrize("ending", [[], [HistoryLost("gone")], [Unreachable("gone")]], ids=["quiet", "lost", "broken"])
def test_one_that_ends_at_once_again_and_again_is_not_hurried(ending: list[StreamEvent | Exception]) -> None:
    """Ten minutes of it open the stream some dozens of times, however it ends."""

    async def main() -> None:
        _, stream, _ = await play([ending] * 10_000)
        assert 10 < len(stream.opened) < 100

    virtual.run(main)


def test_what_a_person_must_mend_comes_out() -> None:
    """And leaves no reason behind for who leads next."""

    async def main() -> None:
        with pytest.raises(WrongTopology):
            await play([[Unreachable("gone")], [WrongTopology("standalone")]])

    virtual.run(main)


def test_the_reason_ends_with_the_leadership() -> None:
    """Cancelled in the middle of an outage: the next leader's health starts clean."""

    async def main() -> None:
        _, _, stage = await play([[Unreachable("gone")]] * 1000, seconds=20)
        assert stage.health.reasons == {}

    virtual.run(main)
