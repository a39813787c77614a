"""The embedder of the pipeline: batches, limits, retries and pauses around a client that does none of these.

Texts of all documents on their way share requests, cut by count and by tokens when a request may go; a text that is
asked for twice while it is on its way is sent once. What the endpoint cannot do now waits here; what one text makes
impossible is found by halving.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Final

from brain.knowledge.chunk import Vector
from brain.knowledge.embedding import Embedded, EmbeddingClient
from brain.knowledge.embedding.texts import check_texts
from brain.knowledge.prices import usd
from brain.knowledge.tokens import TokenCounter
from worker.embedding.gate import MALFORMED_LIMIT, Gate
from worker.embedding.lanes import LINGER, Lanes, Limits, Result, Waiting
from worker.errors import BadVector, BudgetSpent, Fatal, FencedOff, KnowledgeError, Poison, Retryable, Throttled
from worker.pipeline.around import Around

CONTROL: Final = "How to land an ollie."
"""A text that every model can embed: whether a bad vector or a refusal is the endpoint's fault or that of one text."""

REMEMBERED = 1024
"""Vectors that are kept after they were given: more than the pumps store together, 6 MB at 1,536 dimensions."""

LOCAL_LIMITS: Final = Limits(texts=8, tokens=1_024, concurrency=2)
"""In-process: small batches, since nothing is saved by larger ones and a rider's edit waits for the two before it; two,
so that the model never waits for the next."""


class BatchingEmbedder:
    """Implements `worker.ports.TextEmbedder` over one client. Embedders of one provider share its gate."""

    def __init__(
        self, client: EmbeddingClient, tokens: TokenCounter, limits: Limits, around: Around, gate: Gate | None = None
    ) -> None:
        self._client = client
        self._tokens = tokens
        self._limits = limits
        self._around = around
        self._gate = gate or Gate(limits, around, usd)
        self._in_flight: dict[str, asyncio.Future[Result]] = {}
        self._given: deque[str] = deque()  # those of them that have their vector
        self._lanes = Lanes()
        self._dispatching = False
        self._controlling = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.texts_embedded = self.tokens_embedded = self.requests_answered = 0

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector | Poison]:
        """Embed each text; waits through an outage. Raises Fatal when nothing will work until a person acts."""
        lane: list[Waiting] = []
        futures = [self._future(text, lane) for text in texts]
        self._lanes.add(lane)
        self._around.meter.queued("embed", len(self._lanes))
        if lane and not self._dispatching:
            self._dispatching = True
            self._spawn(self._dispatch)
        return list(await asyncio.gather(*(asyncio.shield(future) for future in futures)))

    async def close(self) -> None:
        """Give up what is on its way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _future(self, text: str, lane: list[Waiting]) -> asyncio.Future[Result]:
        """Where the text's vector is awaited; a text that is not on its way yet joins the lane."""
        if known := self._in_flight.get(text):
            return known
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        try:
            check_texts([text])
        except Poison as error:  # nobody need be asked, and no batch be halved around it
            future.set_result(error)
            return future
        future.add_done_callback(lambda done: self._landed(text, done))
        self._in_flight[text] = future
        lane.append(Waiting(text, self._tokens.count(text), future))
        return future

    def _landed(self, text: str, done: asyncio.Future[Result]) -> None:
        """Remember a vector for a while: the document that it is for may not be stored yet when another asks."""
        if done.cancelled() or done.exception() is not None or isinstance(done.result(), Poison):
            del self._in_flight[text]
            return
        self._given.append(text)
        if len(self._given) > REMEMBERED:
            del self._in_flight[self._given.popleft()]

    async def _dispatch(self) -> None:
        """While texts wait: let others join them, wait for a turn, and only then cut what goes."""
        try:
            while self._lanes:
                await self._linger()
                turn = await self._gate.turn()
                self._spawn(partial(self._deliver, self._lanes.cut(self._limits), turn))
                self._around.meter.queued("embed", len(self._lanes))
        finally:
            self._dispatching = False

    async def _linger(self) -> None:
        waited = 0.0
        while waited < self._lanes.linger(self._limits):
            await self._around.clock.sleep(LINGER)
            waited += LINGER

    def _spawn(self, work: Callable[[], Coroutine[object, object, object]]) -> None:
        task = asyncio.ensure_future(_only(work))
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

    async def _deliver(
        self, batch: Sequence[Waiting], turn: AsyncExitStack | None = None, refused_at: float | None = None
    ) -> bool:
        """Give every text its result, halving the batch around one that makes it impossible; whether all have vectors.

        A batch that is refused while each half of it passes was too large for the provider: the next are smaller.
        `refused_at` is when the whole was, of which this is a part.
        """
        doubts = self._gate.doubts
        try:
            embedded = await self._send(batch, turn, refused_at)
        except Poison as error:
            if len(batch) == 1:
                _resolve(batch[0].result, error)
                return False
            whole = self._around.clock.monotonic() if refused_at is None else refused_at
            halves = batch[: len(batch) // 2], batch[len(batch) // 2 :]
            passed = [await self._deliver(half, refused_at=whole) for half in halves]
            if all(passed) and self._gate.doubts == doubts:
                most = max(sum(one.tokens for one in half) for half in halves)
                self._limits = replace(self._limits, tokens=min(self._limits.tokens, most))
            return all(passed)
        except KnowledgeError as error:
            for waiting in batch:
                if not waiting.result.done():
                    waiting.result.set_exception(error)
            return False
        for waiting, vector in zip(batch, embedded.vectors, strict=True):
            _resolve(waiting.result, vector)
        return True

    async def _send(self, batch: Sequence[Waiting], turn: AsyncExitStack | None, refused_at: float | None) -> Embedded:
        """One request, sent until it is answered or patience ends. Raises Poison, Fatal, or the last Retryable."""
        ask = partial(self._gate.ask, self._client, [one.text for one in batch], sum(one.tokens for one in batch))
        began: float | None = None
        bad, again = 0, False
        while True:
            refused: Poison | None = None
            async with turn or await self._gate.turn(again=again):
                turn = None
                try:
                    embedded = await ask()
                except Poison as error:
                    refused = error
                except Retryable as error:
                    began = self._around.clock.monotonic() if began is None else began
                    if self._around.spent(began):
                        raise
                    again = not isinstance(error, Throttled)
                    bad = bad + 1 if isinstance(error, BadVector) else 0
                except Fatal as error:
                    if self._ends(error):
                        raise
                else:
                    return self._counted(batch, embedded)
            if refused is not None:
                await self._blame_batch(batch, refused, refused_at)
                refused_at = None
            if bad >= MALFORMED_LIMIT:
                await self._blame_text(bad)
                bad = 0

    async def _blame_batch(self, batch: Sequence[Waiting], refused: Poison, refused_at: float | None) -> None:
        """Raise the refusal that just came if it is about the batch: the endpoint may have begun to refuse everything.

        A text is believed to be bad when another was taken after its batch was refused; a control, if need be. What
        was refused while the endpoint refused everything is asked for again.
        """
        doubted, doubts = self._gate.doubted, self._gate.doubts
        if len(batch) > 1 and not doubted:
            raise refused  # halve it first
        since = self._around.clock.monotonic() if refused_at is None else refused_at
        async with self._controlling:  # one asks for all
            sound = self._gate.proven >= since or await self._control_passes()
        if sound and not doubted and self._gate.doubts == doubts:
            raise refused

    async def _blame_text(self, bad: int) -> None:
        """Raise Poison when the control passes: then one of the batch is to blame for so many bad answers."""
        if await self._control_passes():
            message = (
                f"the model has no vector for it: {bad} answers were not finite or zero, and another text's was whole"
            )
            raise Poison(message)

    async def _control_passes(self) -> bool:
        """Whether a text that is surely sound has a whole vector now."""
        async with await self._gate.turn():
            try:
                await self._gate.ask(self._client, [CONTROL], self._tokens.count(CONTROL), sound=True)
            except Retryable:
                return False
            except Fatal as error:
                if self._ends(error):
                    raise
                return False
        return True

    def _ends(self, error: Fatal) -> bool:
        """Whether it ends the call: a person must act, and the worker goes on by itself then; a command says it."""
        return self._around.patience is not None or isinstance(error, BudgetSpent | FencedOff)

    def _counted(self, batch: Sequence[Waiting], embedded: Embedded) -> Embedded:
        self.texts_embedded += len(batch)
        self.tokens_embedded += sum(one.tokens for one in batch)
        self.requests_answered += 1
        return embedded


async def _only(work: Callable[[], Coroutine[object, object, object]]) -> None:
    """Begun within the task: one that is cancelled before it runs leaves nothing that nobody awaits."""
    await work()


def _resolve(future: asyncio.Future[Result], result: Result) -> None:
    if not future.done():
        future.set_result(result)
