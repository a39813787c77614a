"""Numbers as the database holds them: of several types, sometimes not numbers at all."""

import math

from bson import Decimal128


def number(value: object) -> float | int | None:
    """A finite number, whole ones as int; None for text, booleans, NaN, infinity and whatever else stands there."""
    if isinstance(value, Decimal128):
        exact = value.to_decimal()
        value = float(exact) if exact.is_finite() else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return int(value)  # without the driver's own class for 64 bits
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def count(value: object) -> int | None:
    """A whole number of at least 0 that every JSON reader holds exactly, or None."""
    found = number(value)
    return found if isinstance(found, int) and 0 <= found < 2**53 else None


def year(value: object) -> int | None:
    """A year between 1900 and 2199, also one that was stored as text."""
    found = int(value) if isinstance(value, str) and value.isdecimal() and len(value) == len("2026") else number(value)
    return found if isinstance(found, int) and 1900 <= found < 2200 else None  # noqa: PLR2004 - years
