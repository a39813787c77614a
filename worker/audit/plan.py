"""Plan: what a backfill would do now, and what it would cost; nothing is written and nothing is embedded.

The documents go through the pipeline's own steps, and a text is to be embedded where the pipeline would embed it: not
when it is stored anywhere under the pin, and once when it is needed twice. So a backfill of the same database does
exactly this, but for what nobody can foresee: a text that the provider refuses (its document is then dead-lettered).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from brain.knowledge.pin import Pin
from worker.audit.compare import PAGE, Compared, Comparer
from worker.ports import KnowledgeStore

Fate = Literal["add", "change", "remove", "keep", "hidden", "unreadable"]
FATES: Final[tuple[Fate, ...]] = ("add", "change", "remove", "keep", "hidden", "unreadable")
"""What becomes of a document; hidden: it has nothing to say and nothing stored; unreadable: it is dead-lettered."""

Row = Literal["written", "rewritten", "kept", "removed"]
"""What becomes of a chunk row; written: with a vector, new or known."""

Text = tuple[str, int, str]
"""A text under a model: its name, its width, the hash of the text."""

SPECIMENS: Final = 8
"""Texts that are kept of those to embed, so that somebody may measure how long one takes."""


@dataclass(frozen=True, slots=True)
class Bill:
    """Texts to embed, and their tokens as the model's tokenizer counts them."""

    embeddings: int = 0
    tokens: int = 0

    def __add__(self, other: "Bill") -> "Bill":
        return Bill(self.embeddings + other.embeddings, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """What would become of one source in one generation.

    `documents` are those that are there, `tried` those of them that are dead-lettered and are tried again.
    """

    documents: int
    tried: int
    fates: Counter[Fate]
    rows: Counter[Row]
    bill: Bill

    @property
    def chunks(self) -> int:
        """Chunk rows there will be."""
        return self.rows["written"] + self.rows["rewritten"] + self.rows["kept"]


@dataclass(slots=True)
class _Making:
    """A plan while it is made.

    `unclaimed` documents have rows that the ledger does not know of: a scan looks at them before it sweeps the strays.
    """

    documents: int = 0
    tried: int = 0
    fates: Counter[Fate] = field(default_factory=Counter[Fate])
    rows: Counter[Row] = field(default_factory=Counter[Row])
    bill: Bill = field(default_factory=Bill)
    unclaimed: set[str] = field(default_factory=set[str])

    def take(self, one: Compared) -> None:
        """Count a document and its rows."""
        delta, stored = one.delta, len(one.state.chunks)
        living = one.state.ledger is not None and not one.state.ledger.deleted
        self.tried += one.state.dead is not None
        if delta is None:
            self.fates["unreadable"] += 1
            self.rows["kept"] += stored if living else 0
            return
        if stored and not living:
            self.unclaimed.add(str(one.key))
        rows: dict[Row, int] = {
            "written": len(delta.write),
            "rewritten": len(delta.rewrite),
            "kept": delta.kept,
            "removed": len(delta.remove),
        }
        self.rows.update(rows)
        self.fates[_fate(stored, rows)] += 1


def _fate(stored: int, rows: Mapping[Row, int]) -> Fate:
    touched = rows["written"] + rows["rewritten"]
    if not touched + rows["kept"]:
        return "remove" if stored else "hidden"
    if not stored:
        return "add"
    return "change" if touched + rows["removed"] else "keep"


class Planner:
    """Plans the sources of one generation, in the order of a backfill: what one has embedded, the next need not.

    `everything` is what is stored in all generations, `own` this one's alone. Planners that share `billed` (model,
    width, hash of the text) pay for a text once.
    """

    def __init__(
        self, comparer: Comparer, own: KnowledgeStore, everything: KnowledgeStore, pin: Pin, billed: set[Text]
    ) -> None:
        self._comparer = comparer
        self._own = own
        self._everything = everything
        self._pin = pin
        self._billed = billed
        self.specimens: list[str] = []

    async def plan(self, source: str, progress: Callable[[str, int], None]) -> SourcePlan:
        """The plan of a source; `progress` is told (source, documents looked at). Raises Retryable."""
        making = _Making()
        async for batch in self._comparer.present(source):
            for one in batch:
                making.take(one)
            making.documents += len(batch)
            making.bill += await self._bill(batch)
            progress(source, making.documents)
        async for batch in self._comparer.gone(source):
            for one in batch:
                making.take(one)
        async for stray in self._own.strays(source):
            making.rows["removed"] += stray.owner not in making.unclaimed
        return SourcePlan(making.documents, making.tried, making.fates, making.rows, making.bill)

    async def _bill(self, batch: Sequence[Compared]) -> Bill:
        """The texts of a batch that nobody has embedded, here or in this plan; of equal texts one."""
        drafts = {d.text_hash: d for one in batch if one.delta is not None for d in one.delta.write}
        digests = [digest for digest in drafts if self._text(digest) not in self._billed]
        known: set[str] = set()
        for start in range(0, len(digests), PAGE):
            known.update(await self._everything.vectors(digests[start : start + PAGE], self._pin))
        lacking = [drafts[digest] for digest in digests if digest not in known]
        self._billed.update(self._text(draft.text_hash) for draft in lacking)
        self.specimens += [draft.text for draft in lacking[: SPECIMENS - len(self.specimens)]]
        return Bill(len(lacking), sum(draft.tokens for draft in lacking))

    def _text(self, digest: str) -> Text:
        return self._pin.model, self._pin.dimensions, digest
