"""What a kind of document must say of itself; one file a kind implements it, purely.

A new kind is one file with one class, and one line in `worker.sources.kinds`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from brain.knowledge.tokens import TokenCounter
from worker.model import DocKey, Document, Shaped


@dataclass(frozen=True, slots=True)
class Setting:
    """What shaping may use beside the document itself.

    `limit` is the most tokens a chunk may have: 512, or the model's window where that is
    smaller. `neighbours` holds those documents of `Source.neighbours` that exist.
    """

    now: datetime
    tokens: TokenCounter
    limit: int
    neighbours: Mapping[DocKey, Document] = field(default_factory=dict[DocKey, Document])


class Source(Protocol):
    """One kind of document."""

    @property
    def collection(self) -> str:
        """The collection it lives in."""
        ...

    @property
    def chunker_version(self) -> int:
        """Raised whenever `shape` would answer differently for the same document."""
        ...

    def neighbours(self, document: Document) -> Sequence[DocKey]:
        """Other documents whose current state the text needs (a trick's prerequisites)."""
        ...

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """What the document says now; no parts when it must not be found.

        Raises nothing for odd values, with one exception: `worker.errors.UnreadableDocument` for a document that holds
        more text than `worker.sources.split.MOST_TOKENS` (nothing is cut silently).
        """
        ...
