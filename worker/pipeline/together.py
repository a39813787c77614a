"""Tasks that live and die together, and do die.

`asyncio.TaskGroup` cancels its tasks once when one of them fails. Once is not enough: in Python 3.11
`asyncio.wait_for`, which the driver uses, loses a cancellation that comes in the same moment as the answer (gh-86296);
the task would go on for ever, and the process with it.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from contextvars import Context
from types import TracebackType
from typing import Any, Final, TypeVar

T = TypeVar("T")

AGAIN: Final = 0.2
"""Seconds after which a task that has not ended is cancelled again."""


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN)


class Together(asyncio.TaskGroup):
    """A task group that cancels again until every task has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._members: set[asyncio.Task[Any]] = set()
        self._ending: asyncio.Task[None] | None = None

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
            self._end_all()
        await super().__aexit__(kind, error, trace)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._members.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._end_all()

    def _end_all(self) -> None:
        if self._ending is None and self._members:
            self._ending = asyncio.ensure_future(end(self._members))
