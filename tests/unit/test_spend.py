"""The day's money through the embedder: reserved, settled, paused and resumed; on a virtual clock."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from brain.knowledge.embedding import Embedded, Purpose, Usage
from brain.knowledge.prices import usd
from tests.support import virtual
from tests.support.memory_budget import MemoryBudget
from tests.support.sim_recorders import CrashingProbe, SimHealth, SimMeter
from tests.support.sim_source import MODEL, WordCounter, vector_of
from tests.support.sim_stage import FAIR
from tests.support.sim_weather import Weather, dice
from worker.embedding.batcher import BatchingEmbedder
from worker.embedding.gate import Gate
from worker.embedding.lanes import Limits
from worker.embedding.spend import REASON, Purse, cost_of, utc_day
from worker.errors import (
    BudgetSpent,
    ConfigurationFault,
    FencedOff,
    KnowledgeError,
    Malformed,
    NotSent,
    Poison,
    Refused,
    Throttled,
    Unavailable,
    Unreachable,
)
from worker.model import Leadership
from worker.pipeline.around import Around

WORD = 0.01
"""Dollars of a word, by the price table of these tests."""


class Client:
    """Implements EmbeddingClient: reports a cost, or none, or fails as scripted by the number of the call."""

    model = MODEL

    def __init__(self) -> None:
        self.sent: list[list[str]] = []
        self.faults: dict[int, KnowledgeError] = {}
        self.reported: float | None = None
        self.hang = False

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Vectors after a second."""
        self.sent.append(list(texts))
        await asyncio.sleep(1)
        if self.hang:
            await asyncio.Event().wait()
        if fault := self.faults.pop(len(self.sent) - 1, None):
            raise fault
        words = sum(len(text.split()) for text in texts)
        return Embedded(tuple(map(vector_of, texts)), Usage(words, self.reported))

    async def close(self) -> None:
        """Nothing to give back."""


class Kit:
    """An embedder with a budget."""

    def __init__(self, daily: float, book: MemoryBudget | None = None, patience: float | None = None) -> None:
        self.book, self.client = book or MemoryBudget(), Client()
        self.health, self.meter, self.clock = SimHealth(), SimMeter(), virtual.VirtualClock()
        probe = CrashingProbe(Weather(dice("w"), FAIR))
        self.around = Around(self.clock, self.meter, self.health, probe, dice("spend"), patience)
        self.purse = Purse(daily, lambda _model, tokens: tokens * WORD, self.book, self.around)
        self.purse.led_by(Leadership(1))
        self.gate = Gate(Limits(), self.around, lambda _model, tokens: tokens * WORD, self.purse)
        self.embedder = self.another()

    def another(self) -> BatchingEmbedder:
        """An embedder that pays from the same purse."""
        return BatchingEmbedder(self.client, WordCounter(), Limits(), self.around, self.gate)

    @property
    def counted(self) -> float:
        """What the book has of today."""
        return self.book.rows.get(utc_day(self.clock.now()), 0.0)


def words(count: int, tag: str) -> str:
    """A text of so many words."""
    return " ".join([tag] * count)


def test_what_is_reported_counts_else_the_table() -> None:
    """The provider's own figure; without it, its tokens by the table; without these, ours."""
    price = usd
    name = "openai/text-embedding-3-small"
    assert cost_of(Usage(10, 0.5), name, 20, price) == 0.5
    assert cost_of(Usage(1_000_000), name, 20, price) == pytest.approx(0.02)
    assert cost_of(Usage(), name, 500_000, price) == pytest.approx(0.01)
    assert cost_of(Usage(10), "maker/unheard-of", 10, price) == 0.0
    assert cost_of(Usage(10, 0.5, twice=True), name, 20, price) == 1.0


def test_a_day_is_paused_when_it_is_spent_and_goes_on_at_midnight() -> None:
    """Nothing is dropped, nothing beyond the budget is sent, readiness tells, and UTC's next day begins anew."""

    async def main() -> None:
        kit = Kit(1.0)
        await kit.embedder.embed([words(60, "a")])
        waiting = asyncio.create_task(kit.embedder.embed([words(60, "b")]))
        await asyncio.sleep(3600)
        assert len(kit.client.sent) == 1
        assert "WORKER_DAILY_BUDGET_USD" in kit.health.reasons[REASON]
        assert kit.purse.left() == pytest.approx(0.4)
        await kit.another().embed([words(10, "c")])
        assert REASON in kit.health.reasons, "what still fits is embedded, and somebody still waits"
        assert kit.counted == pytest.approx(0.7)
        await asyncio.sleep(86_400 - 3600 - 1000 - 60)
        assert not waiting.done()
        await asyncio.wait_for(waiting, 300)
        assert kit.clock.now() < virtual.EPOCH + timedelta(days=1, minutes=5)
        assert kit.health.reasons == {}
        assert kit.counted == pytest.approx(0.6)

    virtual.run(main)


def test_it_survives_a_restart_and_may_be_raised() -> None:
    """The next process goes on from what the book has, on the same day."""

    async def main() -> None:
        first = Kit(1.0)
        await first.embedder.embed([words(90, "a")])
        second = Kit(1.0, first.book)
        await second.purse.open()
        assert second.purse.left() == pytest.approx(0.1)
        waiting = asyncio.create_task(second.embedder.embed([words(50, "b")]))
        await asyncio.sleep(100)
        assert not second.client.sent
        waiting.cancel()
        await second.embedder.close()
        raised = Kit(2.0, first.book)
        await raised.embedder.embed([words(50, "b")])
        assert raised.counted == pytest.approx(1.4)

    virtual.run(main)


def test_a_process_that_is_killed_in_the_middle_of_a_call_leaves_it_counted() -> None:
    """Over-counting is allowed, under-counting is not."""

    async def main() -> None:
        kit = Kit(1.0)
        kit.client.hang = True
        call = asyncio.create_task(kit.embedder.embed([words(40, "a")]))
        await asyncio.sleep(5)
        assert kit.counted == pytest.approx(0.4)
        call.cancel()
        await kit.embedder.close()
        assert kit.counted == pytest.approx(0.4)

    virtual.run(main)


def test_a_purse_under_the_same_leadership_takes_no_reservation_for_its_own() -> None:
    """When generations change the leader begins again under its lease: what was cut off then stays counted beside."""

    async def main() -> None:
        kit = Kit(1.0)
        kit.client.hang = True
        call = asyncio.create_task(kit.embedder.embed([words(40, "a")]))
        await asyncio.sleep(5)
        call.cancel()
        await kit.embedder.close()
        again = Purse(1.0, lambda _model, tokens: tokens * WORD, kit.book, kit.around)
        again.led_by(Leadership(1))
        reservation = await again.reserve(MODEL.name, 30)
        assert kit.counted == pytest.approx(0.7)
        await again.settle(reservation, 0.2, MODEL.name, 30)
        assert kit.counted == pytest.approx(0.6)

    virtual.run(main)


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (NotSent("no connection"), False),
        (Throttled("slowly"), False),
        (Unavailable("503"), False),
        (Unreachable("no answer"), True),
        (Malformed("half an answer"), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failed_call_counts_where_it_may_have_been_charged(error: KnowledgeError, *, counts: bool) -> None:
    """An answer that was lost on its way may be on the bill; an error answer, or none asked, is not."""

    async def main() -> None:
        kit = Kit(10.0)
        kit.client.faults[0] = error
        await kit.embedder.embed([words(10, "a")])
        assert len(kit.client.sent) == 2
        assert kit.counted == pytest.approx(0.2 if counts else 0.1)

    virtual.run(main)


@pytest.mark.parametrize("error", [Poison("400"), Refused("401")], ids=lambda value: type(value).__name__)
def test_a_refusal_costs_nothing(error: KnowledgeError) -> None:
    """The provider answered with an error."""

    async def main() -> None:
        kit = Kit(10.0, patience=5)
        kit.client.faults[0] = error
        await asyncio.gather(kit.embedder.embed([words(10, "a")]), return_exceptions=True)
        assert kit.counted == pytest.approx(0.05 if isinstance(error, Poison) else 0.0), "the control alone: five words"

    virtual.run(main)


def test_a_provider_that_is_dearer_than_the_table_is_believed() -> None:
    """What it reports counts, and the next calls reserve by it, so that the budget holds all the same."""

    async def main() -> None:
        kit = Kit(10.0)
        kit.client.reported = 5.0
        await kit.embedder.embed([words(300, "a")])
        assert kit.counted == pytest.approx(5.0)
        waiting = asyncio.create_task(kit.embedder.embed([words(330, "b")]))
        await asyncio.sleep(60)
        assert not waiting.done(), "5.5 do not fit into what is left, 3.3 would"
        waiting.cancel()
        await kit.embedder.close()

    virtual.run(main)


def test_a_smallest_charge_is_no_rate() -> None:
    """A word that is rounded up to a cent does not make a page cost a hundred."""

    async def main() -> None:
        kit = Kit(1000.0)
        kit.client.reported = 0.05
        await kit.embedder.embed([words(1, "a")])
        reservation = await kit.purse.reserve(MODEL.name, 1000)
        assert reservation is not None
        assert reservation.usd == pytest.approx(1000 * WORD), "by the table"
        small = await kit.purse.reserve(MODEL.name, 1)
        assert small is not None
        assert small.usd == pytest.approx(0.05), "the smallest charge is expected of a small call"

    virtual.run(main)


def test_a_command_does_not_wait_for_tomorrow() -> None:
    """It ends and says why; `try again later` is its exit code."""

    async def main() -> None:
        kit = Kit(0.5, patience=30)
        with pytest.raises(BudgetSpent, match="raise WORKER_DAILY_BUDGET_USD"):
            await kit.embedder.embed([words(60, "a")])

    virtual.run(main)


def test_only_a_leader_spends() -> None:
    """Without a lease, or with one that is over, nothing is sent."""

    async def main() -> None:
        kit = Kit(1.0)
        kit.book.epochs[utc_day(kit.clock.now())] = 2
        with pytest.raises(FencedOff):
            await kit.embedder.embed([words(1, "a")])
        nobody = Kit(1.0)
        nobody.purse = Purse(1.0, usd, nobody.book, nobody.around)
        with pytest.raises(FencedOff):
            await nobody.purse.reserve("openai/text-embedding-3-small", 10)
        assert not kit.client.sent

    virtual.run(main)


def test_an_unknown_price_is_refused_and_a_free_model_writes_nothing() -> None:
    """A budget that cannot be kept is not pretended."""

    async def main() -> None:
        kit = Kit(1.0)
        purse = Purse(1.0, usd, kit.book, kit.around)
        purse.led_by(Leadership(1))
        with pytest.raises(ConfigurationFault, match="WORKER_USD_PER_MILLION_TOKENS"):
            await purse.reserve("maker/unheard-of", 10)
        assert await purse.reserve("sentence-transformers/all-MiniLM-L6-v2", 10**9) is None
        assert kit.book.rows == {}

    virtual.run(main)
