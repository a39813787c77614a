"""Servers whose change streams go on silently where the history has been pruned under them.

MongoDB refuses to read on (136, 286). SecantusDB refuses a token that is too old when a stream is opened, and an open
stream that was overtaken just goes on from what is left. So there a token of a moment ago is opened now and then beside
the stream: pruning takes the oldest first, so while that one opens, nothing behind it is missing.
"""

from collections.abc import Callable
from typing import Final

from bson import Timestamp

from worker.errors import HistoryLost, KnowledgeError, Retryable
from worker.model import Position, Token
from worker.mongo.driver import Database

PROVEN_SECONDS: Final = 1.0
"""How long a place counts as proven. A stream can be overtaken within it only where it reads at the very end of its
history; then a killed worker may have stored a place behind the gap, which nobody notices but the next rescan."""

PROVEN_STEPS: Final = 500
"""How many steps do, however fast they are taken."""


async def skips_silently(database: Database) -> bool:
    """Whether the server is one of those."""
    try:
        return "secantusVersion" in await database.command({"buildInfo": 1}, admin=True)
    except Retryable:
        raise
    except KnowledgeError:
        return False  # a proxy that does not know the question


class Prover:
    """Knows the last place up to which nothing was skipped, and proves the next one; `now` in monotonic seconds."""

    def __init__(self, database: Database, now: Callable[[], float]) -> None:
        self._database = database
        self._now = now
        self._silent: bool | None = None
        self._proven: Position | None = None
        self._told: Token | None = None
        self._at = 0.0
        self._steps = 0

    async def silent(self) -> bool:
        """Whether the server is one that skips silently; asked once."""
        if self._silent is None:
            self._silent = await skips_silently(self._database)
        return self._silent

    async def open(self, position: Position) -> None:
        """A stream opens at this position. Where an unproven step led to it, the place before that one still counts."""
        await self.silent()
        if position.token is None or position.token != self._told:
            self._prove(position)

    async def check(self, place: Position, *, last: bool = False) -> None:
        """Before this place is told: raise HistoryLost when something before it was skipped.

        The server is asked about once a second, and in any case before the `last` step of a stream.
        """
        if not self._silent:
            return
        self._steps += 1
        self._told = place.token
        if self._proven is None or self._proven.token is None:
            self._prove(place)  # the first token that there is
        elif last or self._steps >= PROVEN_STEPS or self._now() - self._at >= PROVEN_SECONDS:
            if self._proven.token != place.token:
                await self._try(self._proven.token, self._proven.at)
            self._prove(place)

    def _prove(self, place: Position) -> None:
        self._proven, self._at, self._steps = place, self._now(), 0

    async def _try(self, token: Token, at: Timestamp) -> None:
        try:
            async with self._database.watch([], start_after=token, batch_size=0):
                pass
        except HistoryLost as error:
            self._proven = None
            message = "the database's history has overtaken the stream"
            raise HistoryLost(message, since=at) from error
