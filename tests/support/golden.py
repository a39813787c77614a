"""The golden files of the tools: `python -m tests.support.golden` writes them; the diff is what is reviewed."""

import json
from pathlib import Path
from typing import Final

from brain.schema import Format, rendered
from brain.tools import ALL_TOOLS

FOLDER: Final = Path(__file__).parents[1] / "golden"


def path(form: Format) -> Path:
    """Where a form's golden file lies."""
    return FOLDER / f"tools.{form}.json"


def text(form: Format) -> str:
    """What it should hold."""
    return json.dumps(rendered(ALL_TOOLS, form), indent=2) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    forms: tuple[Format, ...] = ("chat", "responses", "mcp")
    for each in forms:
        path(each).write_text(text(each), encoding="utf-8")
