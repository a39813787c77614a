"""An event loop whose time is virtual: every wait jumps to its end, so hours pass in milliseconds, always in one order.

    virtual.run(main)                      # like asyncio.run, on a fresh loop
    VirtualClock()                         # a worker.clock.Clock that follows the running loop

There is no I/O and there are no threads here: a program that waits for nothing that can ever happen is a `Deadlock`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

T = TypeVar("T")

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""The wall time at the loop's time 0."""

START: Final = 1000.0
"""The loop's time at its start: not 0, so that nobody mistakes it for "never"."""


class Deadlock(AssertionError):
    """Every task waits, and no timer will ever wake one."""


class _Jump:
    """Stands where the loop keeps its selector: instead of waiting for files, it moves the time."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise Deadlock(self._loop.waiting())
        self._loop.pass_time(timeout)
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop of timers and callbacks alone."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self._selector = _Jump(self)
        self._scheduled: list[asyncio.TimerHandle]
        self._clock_resolution: float
        self.unhandled: list[str] = []
        self.set_exception_handler(self._note)

    def time(self) -> float:
        """The virtual time, in seconds."""
        return self.now

    def pass_time(self, seconds: float) -> None:
        """Move on, and to the next timer where that is so near that asyncio calls it now.

        Else who waits for a moment would be woken a billionth of a second before it, again and again, for ever.
        """
        self.now += seconds
        if self._scheduled and self._scheduled[0].when() - self.now < self._clock_resolution:
            self.now = max(self.now, self._scheduled[0].when())

    def waiting(self) -> str:
        """What every task that is not done waits in."""
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        return "nothing can happen any more; waiting: " + "; ".join(_place(task) for task in tasks)

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.unhandled.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _process_events(self, event_list: list[object]) -> None:
        """Nothing: there are no files."""

    def _write_to_self(self) -> None:
        """Nothing: nobody else wakes this loop."""


class VirtualClock:
    """A clock that follows the running virtual loop."""

    def now(self) -> datetime:
        """The wall time."""
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait, virtually."""
        await asyncio.sleep(seconds)


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a program to its end in virtual time; an error that nobody handled is an AssertionError."""
    loops: list[VirtualLoop] = []

    def make() -> VirtualLoop:
        loops.append(VirtualLoop())
        return loops[0]

    with asyncio.Runner(loop_factory=make) as runner:
        result = runner.run(main())
    assert not loops[0].unhandled, loops[0].unhandled
    return result


def _place(task: "asyncio.Task[Any]") -> str:
    frames = task.get_stack(limit=1)
    where = f"{frames[-1].f_code.co_qualname}:{frames[-1].f_lineno}" if frames else "?"
    return f"{task.get_name()} in {where}"
