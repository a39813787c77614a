"""Texts that wait for a request, one lane a caller; a request takes from the lanes in turn.

So a document of ten thousand chunks holds up nobody: its neighbour's single text is in the next request, and its own
are in every request too (a share each: fair, and nobody starves). Pure but for the futures that it carries.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from brain.knowledge.chunk import Vector
from worker.errors import Poison

Result = Vector | Poison

LINGER: Final = 0.02
"""Seconds that a text waits for others to share its request."""

BULK_LINGER: Final = 0.24
"""Seconds that a request which is a quarter full waits to be filled: so much at once is a scan or a mass edit, where
nobody waits for the single text and a provider counts requests."""

_BULK: Final = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request and one minute may hold.

    The defaults for an OpenAI-compatible endpoint stay far below OpenAI's documented 2,048 inputs and 300,000 tokens a
    request, so that one slow request delays little.
    """

    texts: int = 128
    tokens: int = 60_000
    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A text, its size, and where its vector is awaited."""

    text: str
    tokens: int
    result: asyncio.Future[Result]


class Lanes:
    """What waits, in the order of turns."""

    def __init__(self) -> None:
        self._lanes: deque[deque[Waiting]] = deque()
        self._texts = self._tokens = 0

    def __len__(self) -> int:
        return self._texts

    def add(self, texts: Sequence[Waiting]) -> None:
        """Open a lane for a caller's texts."""
        if texts:
            self._lanes.append(deque(texts))
            self._texts += len(texts)
            self._tokens += sum(one.tokens for one in texts)

    def linger(self, limits: Limits) -> float:
        """Seconds that what is here should wait for company, all in all; 0 when it fills a request."""
        if self._texts >= limits.texts or self._tokens >= limits.tokens:
            return 0.0
        bulk = self._texts * _BULK >= limits.texts or self._tokens * _BULK >= limits.tokens
        return BULK_LINGER if bulk else LINGER

    def cut(self, limits: Limits) -> Sequence[Waiting]:
        """One request's worth: of each lane in turn all that fits, or a share; a text above the limit goes alone.

        A caller waits for the last of its texts, so no more lanes are spread over requests than must be.
        """
        batch: list[Waiting] = []
        lengths = [len(lane) for lane in self._lanes]
        before = -1
        while before < len(batch) < limits.texts:
            before = len(batch)
            for behind, lane in enumerate(self._lanes):
                places = limits.texts - len(batch)
                share = max(1, places // (len(self._lanes) - behind))
                _take(lane, len(lane) if len(lane) <= places else share, batch, limits)
        # Who got nothing stays in front.
        in_turn = sorted(zip(lengths, self._lanes, strict=True), key=lambda one: one[0] > len(one[1]))
        self._lanes = deque(lane for _, lane in in_turn if lane)
        self._texts -= len(batch)
        self._tokens -= sum(one.tokens for one in batch)
        return batch


def _take(lane: deque[Waiting], most: int, batch: list[Waiting], limits: Limits) -> None:
    """Move up to so many texts of the lane into the request, as long as they fit."""
    room = limits.tokens - sum(one.tokens for one in batch)
    while lane and most and len(batch) < limits.texts and (not batch or lane[0].tokens <= room):
        one = lane.popleft()
        batch.append(one)
        room, most = room - one.tokens, most - 1
