"""What one provider lets us do: how many at once, how many a minute, how soon again, for how much money, or nothing.

turn   a retry is paid for ─▶ a place in the window ─▶ the breaker's permit
ask    tokens and requests a minute ─▶ money reserved ─▶ the call ─▶ its end counted, in each of these
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, NoReturn

from brain.knowledge.embedding import Embedded, EmbeddingClient
from worker.backoff import Backoff
from worker.embedding.aimd import Window
from worker.embedding.breaker import Breaker
from worker.embedding.lanes import Limits
from worker.embedding.rates import Rate
from worker.embedding.retry_budget import RetryBudget
from worker.embedding.spend import Price, Purse, cost_of
from worker.errors import (
    BudgetSpent,
    ConfigurationFault,
    Fatal,
    FencedOff,
    KnowledgeError,
    Malformed,
    Poison,
    Retryable,
    Throttled,
    WrongWidth,
)
from worker.pipeline.around import Around

REFUSED_WAIT: Final = 30.0
"""Seconds between two tries with a key that was refused: it starts to work when somebody pays or fixes it."""

LOUD_WAIT: Final = 10.0
"""Seconds that the endpoint may ask us to wait, all in all, before readiness tells of it (promise: loud)."""

SHORTEST_WAIT: Final = 0.05
"""Seconds, however short a wait is named: who names a thousandth each time is not asked a thousand times a second."""

MALFORMED_LIMIT: Final = 3
"""Replies of a wrong shape in a row that are believed to be a passing fault."""

_LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at the retry budget: somebody's success may have paid meanwhile."""


class Gate:
    """One provider's account, for every embedder that asks there.

    Every wait is on the injected clock, but for the minutes' (aiolimiter has the loop's).
    """

    def __init__(self, limits: Limits, around: Around, price: Price, purse: Purse | None = None) -> None:
        """Without a purse spending is counted in the metrics and has no limit."""
        self._around = around
        self._price = price
        self.purse: Final = purse
        clock = around.clock
        self._breaker = Breaker(clock, Backoff(around.rng, base=0.5, cap=30.0))
        self._pace = Backoff(around.rng, base=0.5, cap=30.0)  # of throttles that name no wait
        self._window = Window.of(limits.concurrency)
        self._retries = RetryBudget(clock.monotonic())
        self._out = 0
        self._returned = asyncio.Event()
        self._requests = Rate(limits.requests_per_minute)
        self._tokens = Rate(limits.tokens_per_minute)
        self._malformed = self._wrong_widths = 0
        self._paced = self._throttled = -math.inf
        self._refuses_all: ConfigurationFault | None = None
        self.proven = -math.inf
        """When the latest request went that was answered well (monotonic seconds)."""
        self.doubts = 0
        """How often it turned out that the endpoint takes nothing at all."""

    @property
    def doubted(self) -> bool:
        """Whether the endpoint refused a sound text, and nothing was answered well since."""
        return self._refuses_all is not None

    async def turn(self, *, again: bool = False) -> AsyncExitStack:
        """Wait for the right to ask once; close what comes back when the answer is there. `again` is a retry."""
        if again:
            await self._afford_retry()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._place())
            await stack.enter_async_context(self._breaker.permit())
            return stack.pop_all()

    async def ask(self, client: EmbeddingClient, texts: Sequence[str], tokens: int, *, sound: bool = False) -> Embedded:
        """Ask once, within a turn. Raises what the client raises.

        Beyond that ConfigurationFault for a width that is wrong each time, or where texts are refused that are `sound`:
        every model can embed them; and BudgetSpent in a command.
        """
        await self._requests.acquire()
        await self._tokens.acquire(tokens)
        await self._breaker.held()  # the endpoint may have asked to wait since this turn began
        name = client.model.name
        reservation, sent = None, self._around.clock.monotonic()
        try:
            if self.purse:
                reservation = await self.purse.reserve(name, tokens)
                sent = self._around.clock.monotonic()
            embedded = await client.embed(texts)
        except (BudgetSpent, FencedOff):
            raise
        except KnowledgeError as error:
            if self.purse:
                await self.purse.failed(reservation, error)
            if sound and isinstance(error, Poison):
                self._refuse_all(error)
            self._failed(error, sent)
            raise
        usd = cost_of(embedded.usage, name, tokens, self._price)
        if self.purse:
            await self.purse.settle(reservation, usd, name, tokens)
        self.proven = max(self.proven, sent)
        self._answered(embedded.usage.tokens, usd)
        return embedded

    async def _afford_retry(self) -> None:
        """Wait until the retry budget pays. An open breaker lets one ask at a time, and seldom: that needs no pay."""
        clock = self._around.clock
        while not self._breaker.open and (wait := self._retries.wait(clock.monotonic())) > 0:
            await clock.sleep(min(wait, _LOOK_AGAIN))
        if not self._breaker.open:
            self._retries = self._retries.spent(clock.monotonic())

    @asynccontextmanager
    async def _place(self) -> AsyncGenerator[None]:
        while self._out >= self._window.limit:
            self._returned.clear()
            await self._returned.wait()
        self._out += 1
        try:
            yield
        finally:
            self._out -= 1
            self._returned.set()

    def _answered(self, tokens: int, usd: float) -> None:
        self._around.meter.embedded("ok", tokens=tokens, cost_usd=usd)
        self._window = self._window.widened()
        self._retries = self._retries.earned(self._around.clock.monotonic())
        self._refuses_all = None
        self._alive()

    def _alive(self) -> None:
        """It answered: what was told of it is over."""
        self._around.health.advanced()
        self._breaker.succeeded()
        self._pace.reset()
        self._throttled = -math.inf
        self._returned.set()  # the window may be wider
        self._malformed = self._wrong_widths = 0
        for reason in ("embedding", "embedding_refused", "embedding_malformed"):
            self._around.health.resume(reason)

    def _failed(self, error: KnowledgeError, sent: float) -> None:
        """Decide how long everybody waits before the next request."""
        self._around.meter.embedded(type(error).__name__.lower())
        now = self._around.clock.monotonic()
        if isinstance(error, Throttled):
            self._window = self._window.narrowed(sent, now)
            self._hold(error, sent, now)
        elif isinstance(error, Retryable):
            self._window = self._window.narrowed(sent, now)
            self._count_malformed(error)
            self._breaker.failed()
            if self._breaker.open:
                self._window = self._window.closed(now)
                self._around.health.pause("embedding", str(error))
        elif isinstance(error, Fatal):
            self._refused(error, now)
        elif isinstance(error, Poison) and self._refuses_all:
            self._refused(self._refuses_all, now)
        elif isinstance(error, Poison):
            self._alive()

    def _refused(self, error: Fatal, now: float) -> None:
        """The key, the credit, a model that is gone for a moment: one at a time asks, seldom, until a person acted."""
        self._window = self._window.closed(now)
        self._breaker.trip()
        self._breaker.hold(REFUSED_WAIT)
        self._around.health.pause("embedding_refused", str(error))

    def _refuse_all(self, error: Poison) -> NoReturn:
        """No text is to blame then: like a refused key."""
        message = (
            f"{error}; nor a text that every model can embed, so it takes nothing at all: check EMBEDDING_MODEL, "
            "EMBEDDING_DIMENSIONS and OPENROUTER_BASE_URL; nothing is given up meanwhile"
        )
        self._refuses_all = ConfigurationFault(message)
        self.doubts += 1
        self._refused(self._refuses_all, self._around.clock.monotonic())
        raise self._refuses_all from error

    def _hold(self, error: Throttled, sent: float, now: float) -> None:
        """Everybody waits as long as the endpoint says; where it names no wait, longer from round to round."""
        wait = 0.0
        if error.retry_after:
            wait = max(error.retry_after, SHORTEST_WAIT)
        elif sent >= self._paced:  # those that were out together are refused once
            wait, self._paced = self._pace.next(), now
        self._breaker.hold(wait)
        if self._throttled < 0:
            self._throttled = now
        total = now + wait - self._throttled
        if total > LOUD_WAIT:
            self._around.health.pause("embedding", f"asked to wait, {total:.0f} s by now: {error}")

    def _count_malformed(self, error: Retryable) -> None:
        self._malformed = self._malformed + 1 if isinstance(error, Malformed) else 0
        self._wrong_widths = self._wrong_widths + 1 if isinstance(error, WrongWidth) else 0
        if self._malformed >= MALFORMED_LIMIT:
            self._around.health.pause("embedding_malformed", str(error))
        if self._wrong_widths >= MALFORMED_LIMIT:
            fault = ConfigurationFault(f"{self._wrong_widths} times in a row: {error}")
            self._refused(fault, self._around.clock.monotonic())
            raise fault from error
