"""Numbers of every stored type, exactly; and what is none."""

import math
from decimal import Decimal

import pytest
from bson import Decimal128, Int64, ObjectId

from brain.knowledge.domain.numbers import count, number, year

NOT_NUMBERS: list[object] = [
    *(None, "", "4.5", True, False, math.nan, math.inf, [], {}, ObjectId()),
    *(Decimal128("NaN"), Decimal128("-Infinity")),
]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (0.0, 0),
        (4.5, 4.5),
        (4.0, 4),
        (-1, -1),
        (Int64(7), 7),
        (Decimal128(Decimal("4.7")), 4.7),
        (10**40, 10**40),
    ],
)
def test_numbers(value: object, expected: float) -> None:
    """Zero is a number; a whole float is an int."""
    assert number(value) == expected
    assert type(number(value)) is type(expected)


@pytest.mark.parametrize("value", NOT_NUMBERS)
def test_no_numbers(value: object) -> None:
    """Nothing raises."""
    assert number(value) is None
    assert count(value) is None
    assert year(value) is None


def test_counts_and_years() -> None:
    """A count is whole, not negative and exact in JSON; a year has four digits."""
    assert [count(value) for value in (0, 3.0, 2.5, -1, 2**53)] == [0, 3, None, None, None]
    assert [year(value) for value in (2024, 2024.0, "2024", "24", "MMXX", 1066, 2200)] == [
        2024,
        2024,
        2024,
        *[None] * 4,
    ]
