"""Embed: a vector for every text that needs one, and never one that is already there.

First what is stored anywhere under the pin, then the embedder for the rest. A text that can never have a vector takes
its own document out of the batch, and nobody else's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brain.knowledge.chunk import Vector, text_hash
from worker.errors import Poison
from worker.model import Delta, Publication
from worker.ports import KnowledgeStore, TextEmbedder


@dataclass(frozen=True, slots=True)
class Failed:
    """A document that cannot be published, why, and the SHA-256 of its content, in hex."""

    delta: Delta
    error: Poison
    digest: str


class EmbedStep:
    """Deltas in, publications out."""

    def __init__(self, store: KnowledgeStore, embedder: TextEmbedder) -> None:
        self._store = store
        self._embedder = embedder

    async def embed(self, deltas: Sequence[Delta]) -> tuple[Sequence[Publication], Sequence[Failed]]:
        """Publications in the order of the deltas, and the documents that failed. Raises Retryable or Fatal."""
        texts = {draft.text_hash: draft.text for delta in deltas for draft in delta.write}
        known: dict[str, Vector] = dict(await self._store.vectors(list(texts))) if texts else {}
        missing = [digest for digest in texts if digest not in known]
        poisoned: dict[str, Poison] = {}
        if missing:
            results = await self._embedder.embed([texts[digest] for digest in missing])
            for digest, result in zip(missing, results, strict=True):
                if isinstance(result, Poison):
                    poisoned[digest] = result
                else:
                    known[digest] = result
        return _split(deltas, known, poisoned)


def _split(
    deltas: Sequence[Delta], vectors: Mapping[str, Vector], poisoned: Mapping[str, Poison]
) -> tuple[Sequence[Publication], Sequence[Failed]]:
    publications: list[Publication] = []
    failed: list[Failed] = []
    for delta in deltas:
        error = next((poisoned[d.text_hash] for d in delta.write if d.text_hash in poisoned), None)
        if error is not None:
            texts = "".join(draft.text_hash for draft in delta.write)
            failed.append(Failed(delta, error, text_hash(texts)))
        else:
            publications.append(Publication(delta, {d.text_hash: vectors[d.text_hash] for d in delta.write}))
    return publications, failed
