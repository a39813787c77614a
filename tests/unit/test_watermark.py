"""The watermark, case by case."""

import pytest

from worker.pipeline.watermark import Watermark


def test_nothing_is_low_before_the_first() -> None:
    """Without a start there is no position to store."""
    assert Watermark[int]().low is None


def test_a_gap_holds_it_back() -> None:
    """The second and third may be done: while the first is not, nothing moves; then all moves at once."""
    mark: Watermark[str] = Watermark("start")
    first, second, third = (mark.open(name, since) for name, since in (("a", 1.0), ("b", 2.0), ("c", 3.0)))
    mark.close(third)
    mark.close(second)
    assert (mark.low, mark.waiting, mark.oldest) == ("start", 1, 1.0)
    mark.close(first)
    assert (mark.low, mark.waiting, mark.oldest) == ("c", 0, None)


def test_closing_twice_is_a_bug() -> None:
    """One change has one outcome: a second one is refused."""
    mark: Watermark[str] = Watermark()
    ticket = mark.open("a", 1.0)
    mark.close(ticket)
    with pytest.raises(ValueError, match="twice"):
        mark.close(ticket)


def test_an_idle_step_waits_for_what_is_before_it() -> None:
    """It counts at once when nothing is open, else when everything before it is done."""
    mark: Watermark[str] = Watermark("start")
    mark.skip("idle", 1.0)
    assert mark.low == "idle"
    ticket = mark.open("a", 2.0)
    mark.skip("later", 3.0)
    mark.skip("latest", 4.0)
    assert mark.low == "idle"
    mark.close(ticket)
    assert mark.low == "latest"


def test_an_idle_step_after_a_closed_one_does_not_jump_the_gap() -> None:
    """The entry that is reused is the last one, and still stands behind what is open."""
    mark: Watermark[str] = Watermark("start")
    first, second = mark.open("a", 1.0), mark.open("b", 2.0)
    mark.close(second)
    mark.skip("idle", 3.0)
    assert mark.low == "start"
    mark.close(first)
    assert mark.low == "idle"
