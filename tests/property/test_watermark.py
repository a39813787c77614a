"""The watermark under any order of closing."""

from hypothesis import given
from hypothesis import strategies as st

from worker.pipeline.watermark import Ticket, Watermark

STEPS = st.lists(st.one_of(st.just("open"), st.just("skip"), st.integers(0, 30)), max_size=60)


@given(STEPS)
def test_low_is_the_longest_prefix_that_is_done(steps: list[str | int]) -> None:
    """At every moment `low` is the last position before the first open one; a model that keeps everything agrees."""
    mark: Watermark[int] = Watermark(0)
    tickets: list[Ticket[int]] = []
    done = [True]
    for number, step in enumerate(steps):
        if step == "open":
            tickets.append(mark.open(len(done), float(number)))
            done.append(False)
        elif step == "skip":
            mark.skip(len(done), float(number))
            done.append(True)
        elif waiting := [ticket for ticket in tickets if not ticket.done]:
            ticket = waiting[int(step) % len(waiting)]
            done[ticket.position] = True
            mark.close(ticket)
        first_open = next((place for place, ended in enumerate(done) if not ended), len(done))
        assert mark.low == first_open - 1
        assert mark.waiting == done.count(False)
        assert (mark.oldest is None) == (mark.waiting == 0)


@given(STEPS)
def test_its_size_is_bounded_by_what_is_open(steps: list[str | int]) -> None:
    """However much is done behind a slow one, and in whatever order: what is done in a row is one entry."""
    mark: Watermark[int] = Watermark(0)
    tickets: list[Ticket[int]] = []
    for number, step in enumerate(steps):
        if step == "open":
            tickets.append(mark.open(number, 0.0))
        elif step == "skip":
            mark.skip(number, 0.0)
        elif waiting := [ticket for ticket in tickets if not ticket.done]:
            mark.close(waiting[int(step) % len(waiting)])
        assert entries(mark) <= 2 * mark.waiting


def test_two_hundred_thousand_behind_a_stuck_one() -> None:
    """The head waits for an embedder, everything behind it is done: two entries, and then all moves at once."""
    mark: Watermark[int] = Watermark(0)
    head = mark.open(1, 0.0)
    for number in range(2, 200_002):
        mark.close(mark.open(number, 0.0))
    assert (entries(mark), mark.ahead, mark.low) == (2, 200_001, 0)
    mark.close(head)
    assert (entries(mark), mark.ahead, mark.low) == (0, 0, 200_001)


def entries(mark: Watermark[int]) -> int:
    """How many it holds; that shows nowhere else."""
    count, entry = 0, mark._first  # pyright: ignore[reportPrivateUsage]
    while entry is not None:
        count, entry = count + 1, entry.after
    return count
