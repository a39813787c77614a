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


@given(st.lists(st.booleans(), max_size=200))
def test_idling_takes_no_room(steps: list[bool]) -> None:
    """Steps that owe nothing are one entry however many they are, so an hour of idling behind a slow one is bounded."""
    mark: Watermark[int] = Watermark(0)
    opened = sum(steps)
    for number, opens in enumerate(steps):
        if opens:
            mark.open(number, 0.0)
        else:
            mark.skip(number, 0.0)
    assert len(mark._tickets) <= 2 * opened + 1  # pyright: ignore[reportPrivateUsage] - its size shows nowhere else
