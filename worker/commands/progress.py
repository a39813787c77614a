"""How far a command is, for people: a line that moves on a terminal, nothing elsewhere."""

from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn


class Spinner:
    """Counts documents, a source after the other."""

    def __init__(self, doing: str, *, shown: bool) -> None:
        self._doing = doing
        self._progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), console=Console(stderr=True), disable=not shown
        )
        self._task = self._progress.add_task(doing)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def told(self, source: str, seen: int) -> None:
        """So many documents of a source were looked at."""
        self._progress.update(self._task, description=f"{self._doing}: {source}, {seen:,} documents")
