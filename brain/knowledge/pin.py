"""The pin: the one embedding model whose vectors a chunk collection holds.

Vectors of two models must never meet in one search, so both halves read the model, its width and the collection from
the same row of `knowledge_pins`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PINS: Final = "knowledge_pins"
ACTIVE: Final = "active"
FIRST_COLLECTION: Final = "knowledge_chunks"
FIRST_INDEX: Final = "knowledge_vec"


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model: its exact name (never a router alias), its width, and its input window in its own tokens.

    `window` counts the special tokens that the model adds. Sources: the model card of all-MiniLM-L6-v2 (256 word
    pieces) and OpenAI's reference for text-embedding-3 (8,192 tokens).
    """

    name: str
    dimensions: int
    window: int


MINILM: Final = Model("sentence-transformers/all-MiniLM-L6-v2", 384, 256)
OPENAI_SMALL: Final = Model("openai/text-embedding-3-small", 1536, 8192)
OPENAI_LARGE: Final = Model("openai/text-embedding-3-large", 3072, 8192)


@dataclass(frozen=True, slots=True)
class Pin:
    """Which model fills which chunk collection, searched through which index."""

    model: str
    dimensions: int
    collection: str = FIRST_COLLECTION
    index: str = FIRST_INDEX

    def as_row(self) -> dict[str, object]:
        """The fields of the pin as they are stored and shown."""
        return {
            "model": self.model,
            "dimensions": self.dimensions,
            "collection": self.collection,
            "index": self.index,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> "Pin":
        """Read a stored pin; raises KeyError or ValueError when the row is not one."""
        return cls(
            model=str(row["model"]),
            dimensions=int(str(row["dimensions"])),
            collection=str(row["collection"]),
            index=str(row["index"]),
        )
