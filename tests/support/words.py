"""A token counter for fast tests: a word is a token, and two more stand around every text."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from worker.model import DocKey, Document
from worker.sources.source import Setting

NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)


class WordCounter:
    """Counts words, and two special tokens a text."""

    window = 10_000

    def count(self, text: str) -> int:
        """How many tokens."""
        return len(text.split()) + 2


def words(limit: int = 512, neighbours: Mapping[DocKey, Document] | None = None) -> Setting:
    """A setting that counts words."""
    return Setting(NOW, WordCounter(), limit, neighbours or {})
