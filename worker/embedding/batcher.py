"""The embedder of the pipeline: batches, limits, retries and pauses around a client that does none of these.

Texts of all documents on their way share requests, cut by count and by tokens; a text that is asked for twice while it
is on its way is sent once. What the endpoint cannot do now waits here; what one text makes impossible is found by
halving.
"""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from aiolimiter import AsyncLimiter

from brain.knowledge.chunk import Vector
from brain.knowledge.embedding import Embedded, EmbeddingClient
from brain.knowledge.tokens import TokenCounter
from worker.backoff import Backoff
from worker.embedding.breaker import Breaker
from worker.errors import Fatal, KnowledgeError, Malformed, Poison, Retryable, Throttled
from worker.pipeline.around import Around

LINGER: Final = 0.02
"""Seconds that a text waits for others to share its request."""

REFUSED_WAIT: Final = 30.0
"""Seconds between two tries with a key that was refused: it starts to work when somebody pays or fixes it."""

LOUD_WAIT: Final = 10.0
"""Seconds that the endpoint may ask us to wait before readiness tells of it (promise: loud)."""

MALFORMED_LIMIT: Final = 3
"""Replies of a wrong shape in a row that are believed to be a passing fault (design decision 11)."""

Result = Vector | Poison


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request and one minute may hold.

    The defaults for an OpenAI-compatible endpoint stay far below OpenAI's documented 2,048 inputs and 300,000 tokens a
    request, so that one slow request delays little.
    """

    texts: int = 128
    tokens: int = 60_000
    concurrency: int = 4
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


LOCAL_LIMITS: Final = Limits(texts=16, tokens=4_096, concurrency=1)
"""In-process: small batches, since nothing is saved by larger ones and a rider's edit should not wait behind them."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    text: str
    tokens: int
    result: asyncio.Future[Result]


class BatchingEmbedder:
    """Implements `worker.ports.TextEmbedder` over one client."""

    def __init__(self, client: EmbeddingClient, tokens: TokenCounter, limits: Limits, around: Around) -> None:
        self._client = client
        self._tokens = tokens
        self._limits = limits
        self._around = around
        self._breaker = Breaker(around.clock, Backoff(around.rng, base=0.5, cap=30.0))
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._request_rate = _rate(limits.requests_per_minute)
        self._token_rate = _rate(limits.tokens_per_minute)
        self._in_flight: dict[str, asyncio.Future[Result]] = {}
        self._queue: list[_Waiting] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._malformed = 0
        self.texts_embedded = 0

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector | Poison]:
        """Embed each text; waits through an outage. Raises Fatal when nothing will work until a person acts."""
        futures = [self._enqueue(text) for text in texts]
        return list(await asyncio.gather(*(asyncio.shield(future) for future in futures)))

    async def close(self) -> None:
        """Give up what is on its way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _enqueue(self, text: str) -> asyncio.Future[Result]:
        if future := self._in_flight.get(text):
            return future
        future = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda _done: self._in_flight.pop(text, None))
        self._in_flight[text] = future
        if not self._queue:
            self._spawn(self._linger())
        self._queue.append(_Waiting(text, self._tokens.count(text), future))
        return future

    async def _linger(self) -> None:
        await self._around.clock.sleep(LINGER)
        waiting, self._queue = self._queue, []
        for batch in _batches(waiting, self._limits):
            self._spawn(self._deliver(batch))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A task that died of a bug must not leave its callers waiting for ever."""
        self._tasks.discard(task)
        if task.cancelled() or (bug := task.exception()) is None:
            return
        for future in list(self._in_flight.values()):
            if not future.done():
                future.set_exception(bug)

    async def _deliver(self, batch: Sequence[_Waiting]) -> None:
        """Give every text of the batch its result, halving the batch around a text that makes it impossible."""
        try:
            embedded = await self._send(batch)
        except Poison as error:
            if len(batch) == 1:
                _resolve(batch[0].result, error)
                return
            middle = len(batch) // 2
            await self._deliver(batch[:middle])
            await self._deliver(batch[middle:])
        except KnowledgeError as error:
            for waiting in batch:
                if not waiting.result.done():
                    waiting.result.set_exception(error)
        else:
            for waiting, vector in zip(batch, embedded.vectors, strict=True):
                _resolve(waiting.result, vector)

    async def _send(self, batch: Sequence[_Waiting]) -> Embedded:
        """One request, sent until it is answered or patience ends. Raises Poison, Fatal, or the last Retryable."""
        texts = [waiting.text for waiting in batch]
        tokens = sum(waiting.tokens for waiting in batch)
        began: float | None = None
        while True:
            async with self._slots, self._breaker.permit():
                await self._keep_rate(tokens)
                try:
                    embedded = await self._client.embed(texts)
                except Retryable as error:
                    began = self._around.clock.monotonic() if began is None else began
                    if self._around.spent(began):
                        raise
                    self._count_failure(error)
                except Fatal as error:
                    # The key, the credit, a model that is gone for a moment: a person must act, and the worker that
                    # waits goes on by itself when that is done. A command says it and ends.
                    if self._around.patience is not None:
                        raise
                    self._around.meter.embedded("refused")
                    self._around.health.pause("embedding_refused", str(error))
                    self._breaker.hold(REFUSED_WAIT)
                else:
                    self._count_success(embedded)
                    self.texts_embedded += len(texts)
                    return embedded

    def _count_failure(self, error: Retryable) -> None:
        """Decide how long everybody waits before the next request."""
        self._around.meter.embedded(type(error).__name__.lower())
        if isinstance(error, Throttled):
            wait = error.retry_after if error.retry_after is not None else 1.0
            self._breaker.hold(wait)
            if wait > LOUD_WAIT:
                self._around.health.pause("embedding", f"asked to wait {wait:.0f} s: {error}")
            return
        self._malformed = self._malformed + 1 if isinstance(error, Malformed) else 0
        if self._malformed >= MALFORMED_LIMIT:
            self._around.health.pause("embedding_malformed", str(error))
        self._breaker.failed()
        if self._breaker.open:
            self._around.health.pause("embedding", str(error))

    def _count_success(self, embedded: Embedded) -> None:
        usage = embedded.usage
        self._around.meter.embedded("ok", tokens=usage.tokens, cost_usd=usage.cost_usd or 0.0)
        self._around.health.advanced()
        self._breaker.succeeded()
        self._malformed = 0
        for reason in ("embedding", "embedding_refused", "embedding_malformed"):
            self._around.health.resume(reason)

    async def _keep_rate(self, tokens: int) -> None:
        if self._request_rate is not None:
            await self._request_rate.acquire()
        if self._token_rate is not None:
            await self._token_rate.acquire(min(tokens, self._token_rate.max_rate))


def _resolve(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)


def _rate(per_minute: int | None) -> AsyncLimiter | None:
    return None if per_minute is None else AsyncLimiter(per_minute, 60.0)


def _batches(waiting: Sequence[_Waiting], limits: Limits) -> Iterator[Sequence[_Waiting]]:
    """Cut by count and by tokens; a text larger than the limit of tokens goes alone."""
    batch: list[_Waiting] = []
    tokens = 0
    for one in waiting:
        if batch and (len(batch) >= limits.texts or tokens + one.tokens > limits.tokens):
            yield batch
            batch, tokens = [], 0
        batch.append(one)
        tokens += one.tokens
    if batch:
        yield batch
