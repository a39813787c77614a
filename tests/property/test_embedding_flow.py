"""Window, retry budget and lanes: pure, so that any sequence of events can be tried."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from worker.embedding.aimd import Window
from worker.embedding.lanes import Lanes, Limits, Waiting
from worker.embedding.retry_budget import EARNED, EVERY, MOST, RetryBudget

EVENTS = st.lists(st.tuples(st.sampled_from(["answer", "complaint", "outage"]), st.floats(0, 5)), max_size=200)


@given(st.integers(1, 64), EVENTS)
def test_the_window_stays_between_one_and_its_ceiling(ceiling: int, events: list[tuple[str, float]]) -> None:
    """Whatever happens; an answer never narrows it, a complaint never widens it."""
    window, now = Window.of(ceiling), 0.0
    for event, later in events:
        now += later
        before = window
        match event:
            case "answer":
                window = window.widened()
                assert window.size >= before.size
            case "complaint":
                window = window.narrowed(now - later, now)
                assert window.size <= before.size
            case _:
                window = window.closed(now)
                assert window.limit == 1
        assert 1 <= window.limit <= ceiling


@given(st.integers(2, 64), st.integers(1, 30))
def test_complaints_of_one_round_halve_the_window_once(ceiling: int, complaints: int) -> None:
    """All were sent before the first of them came back."""
    window = Window(ceiling, float(ceiling))
    for at in range(complaints):
        window = window.narrowed(sent_at=0.0, now=1.0 + at)
    assert window.size == ceiling / 2


@given(st.integers(1, 64))
def test_a_window_worth_of_answers_widens_it_by_about_one(size: int) -> None:
    """Additive increase: after a round of answers it is one wider, whatever its size."""
    window = Window(1000, float(size))
    for _ in range(size):
        window = window.widened()
    assert size + 0.5 <= window.size <= size + 1


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 3)), max_size=400))
def test_retries_are_a_tenth_of_the_successes(events: list[tuple[bool, float]]) -> None:
    """And no more but for the stock of the start and the trickle of the clock, however eager somebody is."""
    budget, now = RetryBudget(0.0), 0.0
    retries = successes = 0
    for succeeded, later in events:
        now += later
        if succeeded:
            budget, successes = budget.earned(now), successes + 1
        while budget.wait(now) == 0:
            budget, retries = budget.spent(now), retries + 1
        assert retries <= MOST + EARNED * successes + now / EVERY + 1e-6


@given(st.lists(st.floats(0, EARNED * EVERY), min_size=100, max_size=400))
def test_the_clock_brings_nothing_beside_successes(gaps: list[float]) -> None:
    """Where there are enough of them a tenth is a tenth, but for the stock."""
    budget, now, retries = RetryBudget(0.0), 0.0, 0
    for later in gaps:
        now += later
        budget = budget.earned(now)
        while budget.wait(now) == 0:
            budget, retries = budget.spent(now), retries + 1
    assert retries <= MOST + EARNED * len(gaps) + 1e-6


@given(st.floats(0, 1000))
def test_a_retry_is_never_further_away_than_the_trickle(now: float) -> None:
    """What failed last is not left waiting where nothing else succeeds."""
    budget = RetryBudget(0.0, stock=0.0)
    wait = budget.wait(now)
    assert 0 <= wait <= EVERY
    assert budget.wait(now + wait + 1e-6) == 0


@given(st.lists(st.lists(st.integers(1, 9), max_size=30), max_size=8), st.integers(1, 12), st.integers(1, 40))
def test_requests_hold_what_they_may_and_every_lane_has_its_turn(
    lanes: list[list[int]], texts: int, tokens: int
) -> None:
    """Nothing is lost or doubled, no limit is broken, no room is left, each lane keeps its order and has its turn."""
    limits = Limits(texts=texts, tokens=tokens)
    waiting = Lanes()
    loop = asyncio.new_event_loop()
    for lane, sizes in enumerate(lanes):
        waiting.add([Waiting(f"{lane}.{at}", size, loop.create_future()) for at, size in enumerate(sizes)])
    loop.close()
    left = {lane: len(sizes) for lane, sizes in enumerate(lanes)}
    sent: list[str] = []
    without = Counter[int]()
    while waiting:
        batch = waiting.cut(limits)
        size = sum(one.tokens for one in batch)
        assert 0 < len(batch) <= texts
        assert len(batch) == 1 or size <= tokens
        taken = Counter(int(one.text.split(".")[0]) for one in batch)
        sent += [one.text for one in batch]
        for lane, count in taken.items():
            left[lane] -= count
        rest = [lane for lane, count in left.items() if count]
        assert len(batch) == texts or all(size + lanes[lane][-left[lane]] > tokens for lane in rest)
        for lane in rest:  # who still has texts waits for its turn as long as there are others, and no longer
            without[lane] = 0 if taken[lane] else without[lane] + 1
            assert without[lane] < len(lanes)
    assert sorted(sent) == sorted(f"{lane}.{at}" for lane, sizes in enumerate(lanes) for at in range(len(sizes)))
    for lane in range(len(lanes)):
        mine = [int(text.split(".")[1]) for text in sent if text.startswith(f"{lane}.")]
        assert mine == sorted(mine)
