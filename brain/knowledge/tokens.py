"""Counting tokens with the pinned model's own tokenizer, offline."""

from typing import Protocol


class TokenCounter(Protocol):
    """The tokenizer of one model."""

    @property
    def window(self) -> int:
        """The most tokens the model reads; the rest would be cut silently."""
        ...

    def count(self, text: str) -> int:
        """How many tokens the model reads for this text, special tokens included."""
        ...
