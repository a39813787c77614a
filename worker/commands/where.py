"""Where a command works, and how it answers: the options that every command takes."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Where:
    """`--embedded [--data DIR]` and `--json`."""

    embedded: bool
    data: Path
    as_json: bool

    @property
    def people(self) -> bool:
        """Whether a person reads: a terminal, and not asked for JSON."""
        return not self.as_json and sys.stderr.isatty()

    def answer(self, value: Mapping[str, object], shown: RenderableType) -> None:
        """Print the answer on stdout: one JSON value, or what a person reads."""
        if self.as_json:
            sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")
        elif isinstance(shown, str):
            sys.stdout.write(shown + "\n")  # as it is: rich would break an address to be copied, and read [x] as markup
        else:
            Console().print(shown)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table; numbers stand right, nothing is cut off: a key is there to be copied."""
    made = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(isinstance(row[index], int | float) for row in rows)
        made.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        cells = ("" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        made.add_row(*(Text(cell) for cell in cells))  # not str, which rich would read as markup
    return made
