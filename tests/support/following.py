"""Following a change stream in a test: so far, and no further."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final, cast

from worker.model import DocumentChanged, StreamItem

PATIENCE: Final = 20.0
"""Seconds that a test waits before it believes that something hangs: a bound, never a measurement."""

Enough = Callable[[list[StreamItem]], bool]


async def follow(items: AsyncIterator[StreamItem], enough: Enough) -> list[StreamItem]:
    """The steps up to the one that makes it enough, or to the end of the stream."""
    found: list[StreamItem] = []
    async with asyncio.timeout(PATIENCE), aclosing(cast("AsyncGenerator[StreamItem]", items)) as following:
        async for item in following:
            found.append(item)
            if enough(found):
                break
    return found


def ids(found: list[StreamItem]) -> list[object]:
    """The ids of the documents that changed, in order."""
    return [item.event.key.raw for item in found if isinstance(item.event, DocumentChanged)]


def saw(*wanted: object) -> Enough:
    """Enough when exactly these documents have changed, in this order; a wrong one ends it too."""
    return lambda found: len(ids(found)) >= len(wanted)


async def until(holds: Callable[[], bool], what: str) -> None:
    """Give the other tasks their turn until something holds."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not holds():  # noqa: ASYNC110 - what it asks about has no event
                await asyncio.sleep(0.005)
    except TimeoutError as error:
        message = f"never came: {what}"
        raise AssertionError(message) from error
