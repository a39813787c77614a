"""How a command answers people."""

from pathlib import Path

import pytest
from rich.console import Console

from worker.commands.where import Where, table

KEY = "trickipedia/s:a-document-whose-key-must-be-copied-whole-[/red]"


def test_a_table_cuts_nothing_off() -> None:
    """A key is an argument of the next command, also in 40 columns; what looks like markup is text."""
    console = Console(width=40)
    with console.capture() as printed:
        console.print(table("letters", ["key", "tries"], [[KEY, 1]]))
    cells = [line.split("│")[1].strip() for line in printed.get().splitlines() if line.startswith("│")]
    assert "".join(cells) == KEY


def test_a_sentence_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Not broken at the terminal's width, not read as markup."""
    uri = f"mongodb://127.0.0.1:39433/?{'x' * 200}[/red]"
    Where(embedded=True, data=Path("data"), as_json=False).answer({}, uri)
    assert capsys.readouterr().out == uri + "\n"
