"""Embed: a vector for every text that needs one, and never one that is already there.

First what is stored anywhere under the pin, then the embedder for the rest, for the active generation and then for the
other one, each with its own model. A text that can never have a vector takes its own document out of the batch, and
nobody else's; where only the other generation's model refuses it, out of that generation alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brain.knowledge.chunk import Vector, text_hash
from brain.knowledge.pin import Pin
from worker.errors import Poison
from worker.model import Delta, Publication
from worker.ports import KnowledgeStore, TextEmbedder


@dataclass(frozen=True, slots=True)
class Failed:
    """A document that cannot be published, why, and the SHA-256 of its content, in hex.

    `published`: it is published after all, but for another generation than the active one, which it cannot be in.
    """

    delta: Delta
    error: Poison
    digest: str
    published: bool = False


class EmbedStep:
    """Deltas in, publications out; `beside` holds the embedder of each other generation."""

    def __init__(
        self, store: KnowledgeStore, embedder: TextEmbedder, beside: Mapping[Pin, TextEmbedder] | None = None
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._beside = beside or {}

    async def embed(self, deltas: Sequence[Delta]) -> tuple[Sequence[Publication], Sequence[Failed]]:
        """Publications in the order of the deltas, and the documents that failed. Raises Retryable or Fatal."""
        vectors = await self._vectors(deltas, None, self._embedder)
        publications, failed = _split(deltas, vectors)
        for pin, embedder in self._beside.items():
            others = [other for p in publications if isinstance(other := p.delta.beside.get(pin), Delta)]
            found = await self._vectors(others, pin, embedder)
            publications, more = _add(publications, pin, found)
            failed = [*failed, *more]
        return publications, failed

    async def _vectors(
        self, deltas: Sequence[Delta], pin: Pin | None, embedder: TextEmbedder
    ) -> Mapping[str, Vector | Poison]:
        """A vector for each text to be written in one generation (None: the active one), or why there can be none."""
        texts = {draft.text_hash: draft.text for delta in deltas for draft in delta.write}
        if not texts:
            return {}
        found: dict[str, Vector | Poison] = dict(await self._store.vectors(list(texts), pin))
        missing = [digest for digest in texts if digest not in found]
        if missing:
            results = await embedder.embed([texts[digest] for digest in missing])
            found.update(zip(missing, results, strict=True))
        return found


def _split(
    deltas: Sequence[Delta], vectors: Mapping[str, Vector | Poison]
) -> tuple[Sequence[Publication], Sequence[Failed]]:
    publications: list[Publication] = []
    failed: list[Failed] = []
    for delta in deltas:
        made = _publication(delta, vectors)
        if isinstance(made, Poison):
            failed.append(Failed(delta, made, digest_of(delta)))
        else:
            publications.append(made)
    return publications, failed


def _add(
    publications: Sequence[Publication], pin: Pin, vectors: Mapping[str, Vector | Poison]
) -> tuple[Sequence[Publication], Sequence[Failed]]:
    """Complete the publications for another generation; a document that cannot be in it is published without."""
    complete: list[Publication] = []
    failed: list[Failed] = []
    for publication in publications:
        delta = publication.delta
        other = delta.beside[pin]
        made = other if isinstance(other, Poison) else _publication(other, vectors)
        if isinstance(made, Poison):
            digest = digest_of(other) if isinstance(other, Delta) else text_hash(f"{digest_of(delta)} {made}")
            failed.append(Failed(delta, made, digest, published=True))
            complete.append(replace(publication, delta=replace(delta, clears_dead_letter=False)))
        else:
            complete.append(replace(publication, beside={**publication.beside, pin: made}))
    return complete, failed


def _publication(delta: Delta, vectors: Mapping[str, Vector | Poison]) -> Publication | Poison:
    found = {draft.text_hash: vectors[draft.text_hash] for draft in delta.write}
    errors = [vector for vector in found.values() if isinstance(vector, Poison)]
    return errors[0] if errors else Publication(delta, {d: v for d, v in found.items() if not isinstance(v, Poison)})


def digest_of(delta: Delta) -> str:
    """The SHA-256 of what would be written of the document, in hex."""
    texts, others = (draft.text_hash for draft in delta.write), (draft.content_hash for draft in delta.rewrite)
    return text_hash("".join((*texts, *others)))
