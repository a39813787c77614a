"""Texts that wait for a request, one lane a caller; a request takes from every lane in turn.

So a document of ten thousand chunks holds up nobody: its neighbour's single text is in the next request, and its own
are in every request too (round robin: fair, and nobody starves). Pure but for the futures that it carries.
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
        """One request's worth, a text of each lane in turn; a text larger than the limit of tokens goes alone."""
        batch: list[Waiting] = []
        tokens = 0
        while self._lanes and len(batch) < limits.texts:
            lane = self._lanes[0]
            if batch and tokens + lane[0].tokens > limits.tokens:
                break
            one = lane.popleft()
            batch.append(one)
            tokens += one.tokens
            self._lanes.rotate(-1)
            if not lane:
                self._lanes.pop()
        self._texts -= len(batch)
        self._tokens -= tokens
        return batch
