"""What a benchmark found, as values; printed as tables by `__main__`."""

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

Sense = Literal["at least", "at most"]


@dataclass(frozen=True, slots=True)
class Line:
    """One measured value; `aim` is what it should be `at least` or `at most`, where there is an aim."""

    what: str
    value: float
    unit: str = ""
    aim: float | None = None
    sense: Sense = "at least"

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None without an aim."""
        if self.aim is None:
            return None
        return self.value >= self.aim if self.sense == "at least" else self.value <= self.aim


@dataclass(slots=True)
class Report:
    """The lines of one benchmark, and sentences beside them."""

    name: str
    lines: list[Line] = field(default_factory=list[Line])
    notes: list[str] = field(default_factory=list[str])

    def add(self, what: str, value: float, unit: str = "") -> None:
        """Take in a value without an aim."""
        self.lines.append(Line(what, value, unit))

    def aim(self, what: str, value: float, sense: Sense, aim: float, unit: str = "times") -> None:
        """Take in a value that should be at least or at most `aim`."""
        self.lines.append(Line(what, value, unit, aim, sense))

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {"lines": [asdict(line) | {"met": line.met} for line in self.lines], "notes": self.notes}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    quick: bool = False
    with_cocoindex: bool = False
    with_engines: bool = False


def percentile(values: list[float], share: float) -> float:
    """The value below which that share lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ratio_of_rounds(ours: list[float], others: list[float]) -> float:
    """The median of the ratios of rounds that ran beside each other."""
    return median(a / b for a, b in zip(ours, others, strict=True))
