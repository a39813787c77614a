"""`python -m tests.bench [name …] [--json FILE] [--quick] [--with-cocoindex] [--with-engines]`: measure, print."""

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tests.bench import chunking, embedding, freshness, pipeline, search, tools
from tests.bench.report import Line, Options, Report

BENCHMARKS: Final[Mapping[str, Callable[[Options], Report]]] = {
    "pipeline": pipeline.measure,
    "freshness": freshness.measure,
    "chunking": chunking.measure,
    "search": search.measure,
    "embedding": embedding.measure,
    "tools": tools.measure,
}
_WHOLE: Final = 100  # from here on, decimals say nothing


def main() -> None:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure; nothing is asserted.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"out of {', '.join(BENCHMARKS)}; none: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the values there too")
    parser.add_argument("--quick", action="store_true", help="small counts, under two minutes")
    parser.add_argument("--with-cocoindex", action="store_true", help="chunking: beside CocoIndex in a venv of its own")
    parser.add_argument("--with-engines", action="store_true", help="search: beside faiss and usearch, likewise")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in BENCHMARKS]:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    signal.signal(signal.SIGTERM, _end)
    options = Options(arguments.quick, arguments.with_cocoindex, arguments.with_engines)
    console = Console(soft_wrap=True)
    machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    found: dict[str, object] = {"machine": machine, "quick": options.quick}
    for name in arguments.names or list(BENCHMARKS):
        before, began = os.getloadavg()[0], time.monotonic()
        report = BENCHMARKS[name](options)
        load = f"{machine}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; {time.monotonic() - began:.0f} s"
        _show(console, report, load)
        found[name] = report.as_json() | {"load": load}
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


def _end(_number: int, _frame: object) -> None:
    """Unwind, so that the servers and workers that we started end too."""
    sys.exit(143)


def _show(console: Console, report: Report, load: str) -> None:
    table = Table(title=f"{report.name} ({load})", title_justify="left")
    table.add_column("measured")
    table.add_column("value", justify="right")
    table.add_column("aim")
    for line in report.lines:
        table.add_row(line.what, f"{_number(line.value)} {line.unit}".rstrip(), _aim(line))
    console.print(table)
    for note in report.notes:
        console.print(f"  {note}")


def _aim(line: Line) -> str:
    if line.aim is None:
        return ""
    word = "[green]met[/green]" if line.met else "[red]missed[/red]"
    return f"{line.sense} {line.aim:g} {line.unit}: {word}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _WHOLE or value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    main()
