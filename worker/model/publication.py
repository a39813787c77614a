"""What goes out: what a document says, what must be written of it, and that with its vectors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bson import Timestamp

from brain.knowledge.chunk import Metadata, Vector
from brain.knowledge.pin import Pin
from worker.errors import Poison
from worker.model.keys import DocKey
from worker.model.stored import LedgerRow


@dataclass(frozen=True, slots=True)
class Part:
    """One chunk to be: `name` is stable under edits elsewhere in the document, `text` is exactly what is embedded."""

    name: str
    text: str
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Shaped:
    """What a document says now. No parts: it is hidden, or says nothing.

    `refs` are the documents whose face appears in the text, and `faces` those faces as they were read for it (a ref
    that is not in it showed none); `face` is what other documents' texts say of this one (a trick's name, say), so that
    a change of it refreshes them; `expires_at` is when it leaves without any write; `oddities` names the odd values
    that were met (a closed set of words, for counting).
    """

    parts: tuple[Part, ...] = ()
    refs: tuple[DocKey, ...] = ()
    face: str | None = None
    expires_at: datetime | None = None
    oddities: tuple[str, ...] = ()
    faces: Mapping[DocKey, str | None] = field(default_factory=dict[DocKey, str | None])


@dataclass(frozen=True, slots=True)
class ChunkDraft:
    """A chunk as it should be stored, without its vector."""

    id: str
    text: str
    metadata: Metadata
    text_hash: str
    content_hash: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Delta:
    """What must be written so that the stored state of one document becomes f(document).

    `write` needs vectors; `rewrite` keeps the stored vector and replaces the rest of the row; `remove` holds chunk ids.
    `ledger` is None when nothing about the document needs storing. `refresh_neighbours` says that a document that
    refers to this one may show another face than it has now. `beside` says the same of the chunks in the other
    generation, where one lives (there is one ledger for all), or why the document cannot be in it.
    """

    key: DocKey
    version: Timestamp
    write: tuple[ChunkDraft, ...] = ()
    rewrite: tuple[ChunkDraft, ...] = ()
    remove: tuple[str, ...] = ()
    kept: int = 0
    ledger: LedgerRow | None = None
    refresh_neighbours: bool = False
    clears_dead_letter: bool = False
    beside: "Mapping[Pin, Delta | Poison]" = field(default_factory=dict[Pin, "Delta | Poison"])

    @property
    def empty(self) -> bool:
        """Nothing to write at all."""
        written = self.write or self.rewrite or self.remove
        if self.ledger is not None or written or self.clears_dead_letter or self.refresh_neighbours:
            return False
        return all(isinstance(other, Delta) and other.empty for other in self.beside.values())

    @property
    def texts(self) -> int:
        """How many texts need a vector, in every generation."""
        return len(self.write) + sum(other.texts for other in self.beside.values() if isinstance(other, Delta))

    @property
    def rows(self) -> int:
        """How many chunk rows are written or removed, in every generation."""
        others = sum(other.rows for other in self.beside.values() if isinstance(other, Delta))
        return len(self.write) + len(self.rewrite) + len(self.remove) + others


@dataclass(frozen=True, slots=True)
class Publication:
    """A delta with the vector of every text hash in `delta.write`: ready to be stored in one transaction.

    `beside` holds those of the other generation, which are stored in the same transaction or not at all.
    """

    delta: Delta
    vectors: Mapping[str, Vector]
    beside: "Mapping[Pin, Publication]" = field(default_factory=dict[Pin, "Publication"])
