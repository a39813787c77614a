"""Figures that tests measure and do not assert: printed at the end of the run."""

from collections.abc import Iterator, Sequence
from typing import Final

FIGURES: Final = "figures"
"""The name of the property under which a test records a line of figures."""


def lines(reports: Sequence[object]) -> Iterator[str]:
    """Every recorded line, in the order of the reports."""
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == FIGURES:
                yield str(value)
