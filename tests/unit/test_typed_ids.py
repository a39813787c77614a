"""Document ids as text: equal where MongoDB says equal, different where it says different, whatever the id."""

import pytest
from bson import Decimal128, ObjectId

from worker.model import typed_id


def test_equal_numbers_are_one_id() -> None:
    """As in MongoDB's own index."""
    assert {typed_id(one) for one in (5, 5.0, Decimal128("5"), Decimal128("5.00"))} == {"n:5"}
    assert {typed_id(one) for one in (0, -0.0, Decimal128("0E+6000"))} == {"n:0"}


def test_types_differ() -> None:
    """An ObjectId and its hex, a number, its text and a truth value."""
    hexadecimal = "65f000000000000000000001"
    assert len({typed_id(one) for one in (ObjectId(hexadecimal), hexadecimal, 1, "1", True)}) == 5


@pytest.mark.parametrize("odd", [Decimal128("1E+6000"), Decimal128("NaN"), float("inf"), "x" * 300, "a\nb", {"a": 1}])
def test_what_cannot_be_printed_is_named_by_its_hash(odd: object) -> None:
    """A number of thousands of digits too: Python would not turn it into text."""
    assert typed_id(odd).startswith("h:")
