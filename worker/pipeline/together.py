"""Tasks that live and die together, and do die.

`asyncio.TaskGroup` cancels its tasks once when one of them fails. Once is not enough: in Python 3.11
`asyncio.wait_for`, which the driver uses, loses a cancellation that comes in the same moment as the answer (gh-86296);
the task would go on for ever, and the process with it. And where a task does not end at all (a lock that a driver lost
under it, say), the process ends without it: there is no half a worker, and the next start goes on where this one was.
"""

import asyncio
import logging
import os
import time
from collections.abc import Coroutine, Iterable
from contextvars import Context
from types import TracebackType
from typing import Any, Final, TypeVar

from brain.knowledge.log import log
from worker.errors import EXIT_BUG, KnowledgeError, exit_code

T = TypeVar("T")

_logger = logging.getLogger(__name__)

AGAIN: Final = 0.2
"""Seconds after which a task that has not ended is cancelled again."""


GIVE_UP: Final = 10.0
"""Seconds after which a process whose tasks do not end is ended without them."""

_LAST_WORDS: Final = 0.3  # seconds that the log has to be written


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN)


async def first_of(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(waiting)


async def unless(stopped: asyncio.Event, work: Coroutine[object, object, T]) -> T | None:
    """The result of the work, or None when the stop comes first; the work has ended then."""
    task, stop = asyncio.ensure_future(work), asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await end({one for one in (task, stop) if not one.done()})


async def within(seconds: float, work: Coroutine[object, object, object]) -> bool:
    """Whether the work was done in that time; else it has been ended."""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=max(0.0, seconds))
        if done:
            task.result()
        return bool(done)
    finally:
        if not task.done():
            await end([task])


class Together(asyncio.TaskGroup):
    """A task group that cancels again until every task has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._members: set[asyncio.Task[Any]] = set()
        self._ending: asyncio.Task[None] | None = None
        self._last_call: asyncio.TimerHandle | None = None

    def create_task(  # pyright: ignore[reportIncompatibleMethodOverride] - coroutines alone are started here
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        """Start a task; when it fails, all end."""
        task = super().create_task(coro, name=name, context=context)
        self._members.add(task)
        task.add_done_callback(self._ended)
        return task

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._end_all(error)
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            if self._last_call is not None:
                self._last_call.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._members.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._end_all(task.exception())

    def _end_all(self, error: BaseException | None) -> None:
        if self._ending is None and self._members:
            self._ending = asyncio.ensure_future(end(self._members))
            self._last_call = asyncio.get_running_loop().call_later(GIVE_UP, self._give_up, error)

    def _give_up(self, error: BaseException | None) -> None:
        names = ", ".join(sorted(task.get_name() for task in self._members))
        words = f"{names} did not end within {GIVE_UP:.0f} s, so the process ends without: {error}"
        log(_logger, logging.CRITICAL, "task_ignores_cancel", words)
        time.sleep(_LAST_WORDS)
        os._exit(exit_code(error) if isinstance(error, KnowledgeError) else EXIT_BUG)
