"""The canary: now and then the search index is asked for a chunk that was just stored, until it finds it.

    stored ─▶ asked, at growing waits ─▶ found: its seconds are observed
                                      ├▶ replaced or removed meanwhile: nobody can know any more
                                      └▶ not found within LONGEST seconds: those are observed, and one log line says so

Nothing is written for it: what an edit made serves. The seconds begin where those of `lag_seconds` end, so that the two
together are what a rider waits for.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Protocol

from bson import Timestamp

from brain.knowledge.log import log
from worker.clock import Clock
from worker.errors import KnowledgeError, Retryable
from worker.model import Publication
from worker.ports import Meter

EVERY: Final = 60.0
"""Seconds between the end of one canary and the next: a few searches a minute are all that it costs."""

LONGEST: Final = 300.0
"""Seconds after which it is given up: an index of Atlas lags by seconds."""

_FIRST_WAIT: Final = 0.1
_LONGEST_WAIT: Final = 5.0
_SHARE: Final = 0.25  # of what was waited so far: no answer is later than that by much
_ASK_SECONDS: Final = 10.0  # a search on an index that is being built was seen to hang without a limit

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk row with a new vector, as it was written at a version."""

    id: str
    version: Timestamp


class Searched(Protocol):
    """What searches see of one generation."""

    async def finds(self, chunk: StoredChunk) -> bool | None:
        """Whether a search by the chunk's own vector finds it; None when it is not stored so any more."""
        ...


class Canary:
    """Observes the delay of one generation's index; without `watch` what it is told is forgotten."""

    def __init__(self, searched: Searched, clock: Clock, meter: Meter) -> None:
        self._searched = searched
        self._clock = clock
        self._meter = meter
        self._next: asyncio.Future[StoredChunk] | None = None

    def stored(self, publication: Publication) -> None:
        """Take note of what was stored just now; the first with a new vector is the next canary."""
        delta = publication.delta
        if delta.write and self._next is not None and not self._next.done():
            self._next.set_result(StoredChunk(delta.write[0].id, delta.version))

    async def watch(self) -> None:
        """Wait for a publication, then for the index, and so on for ever."""
        while True:
            self._next = asyncio.get_running_loop().create_future()
            chunk = await self._next
            try:
                await self._follow(chunk)
            except KnowledgeError as error:  # the role may not search, say: nothing that stops the worker
                log(_LOGGER, logging.WARNING, "canary_refused", f"the search index cannot be asked: {error}")
            await self._clock.sleep(EVERY)

    async def _follow(self, chunk: StoredChunk) -> None:
        began = self._clock.monotonic()
        while (found := await self._finds(chunk)) is False:
            waited = self._clock.monotonic() - began
            if waited >= LONGEST:
                message = f"the search index did not find a stored chunk within {waited:.0f} s: see `index status`"
                log(_LOGGER, logging.WARNING, "canary_not_found", message, seconds=round(waited, 1))
                break
            await self._clock.sleep(min(max(_FIRST_WAIT, _SHARE * waited), _LONGEST_WAIT))
        if found is not None:
            self._meter.searchable(self._clock.monotonic() - began)

    async def _finds(self, chunk: StoredChunk) -> bool | None:
        """The answer; none yet where the database does not answer now."""
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                return await self._searched.finds(chunk)
        except (Retryable, TimeoutError):
            return False
