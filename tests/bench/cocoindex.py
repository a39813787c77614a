"""CocoIndex over the same pages, in a virtual environment of its own under a temporary folder."""

from pathlib import Path

from tests.bench.report import Report


def measure(report: Report, pages: Path) -> None:
    """Install and run it; what cannot be done is a note."""
    del pages
    report.notes.append("CocoIndex: not driven yet")
