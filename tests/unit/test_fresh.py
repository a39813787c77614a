"""Moments and keys of `fresh`: what a caller may tell, and when a version covers it."""

import uuid
from datetime import UTC, datetime

import pytest
from bson import ObjectId, Timestamp

from brain.knowledge.fresh import Since
from brain.knowledge.keys import document_key, possible_keys

HEX = "65F000000000000000000001"


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (0, Since(milliseconds=0)),
        (1_764_547_200_123, Since(milliseconds=1_764_547_200_123)),
        ({"t": 7, "i": 1}, Since(Timestamp(7, 1))),
        ({"i": 0, "t": 0}, Since(Timestamp(0, 0))),
    ],
)
def test_moments(told: object, meant: Since) -> None:
    """Milliseconds since 1970, or an operation time."""
    assert Since.told(told) == meant


NONE: list[object] = [
    *(None, "1764547200123", 1.5, True, -1, 2**63, float("nan"), [], {}),
    *({"t": 1}, {"t": 1, "i": 2, "x": 3}, {"t": "1", "i": 2}, {"t": -1, "i": 2}),
    *({"t": 2**32, "i": 0}, {"t": True, "i": 1}, {"$gt": 1, "i": 2}),
]


@pytest.mark.parametrize("told", NONE)
def test_moments_that_are_none(told: object) -> None:
    """Said in words, not met later as a type error."""
    with pytest.raises(ValueError, match="milliseconds since 1970"):
        Since.told(told)


def test_an_operation_time_is_exact() -> None:
    """To the increment, whatever the wall says."""
    since = Since(Timestamp(100, 5))
    late = datetime(2100, 1, 1, tzinfo=UTC)
    assert not since.covered_by(Timestamp(100, 4), late)
    assert since.covered_by(Timestamp(100, 5))
    assert since.covered_by(Timestamp(101, 0))


def test_milliseconds_within_the_second() -> None:
    """A later second covers, an earlier does not; within the second it must have been stored after the moment."""
    since = Since(milliseconds=100_500)
    assert since.covered_by(Timestamp(101, 0))
    assert not since.covered_by(Timestamp(99, 9))
    assert not since.covered_by(Timestamp(100, 9))
    assert not since.covered_by(Timestamp(100, 9), datetime.fromtimestamp(100.4, UTC))
    assert since.covered_by(Timestamp(100, 9), datetime.fromtimestamp(100.6, UTC))


def test_the_keys_that_a_text_may_mean() -> None:
    """A text; an ObjectId, a number or a UUID where it is the text of one."""
    some = uuid.uuid4()
    assert possible_keys("spots", "kickflip") == ["spots/s:kickflip"]
    assert possible_keys("spots", HEX) == [f"spots/s:{HEX}", f"spots/o:{HEX.lower()}"]
    assert possible_keys("spots", "007") == ["spots/s:007", "spots/n:7"]
    assert possible_keys("spots", str(some))[1] == document_key("spots", some)
    assert possible_keys("spots", ObjectId(HEX)) == [f"spots/o:{HEX.lower()}"]
    assert possible_keys("spots", 7) == ["spots/n:7"]
    assert [key[:8] for key in possible_keys("spots", "9" * 5000)] == ["spots/h:"]
    assert len(possible_keys("spots", "x" * 24)) == 1
