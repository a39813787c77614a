"""A sample of stored vectors, embedded again: the only way to find vectors of another model that say they are ours.

A row names the model of its vector, and `verify` believes it; a provider that silently answered with another model of
the same width, or a restore of the wrong collection, left rows that name the right one. Two models put the same text in
unrelated places (cosine near 0), one model twice in the same place (above 0.99, also where a provider rounds), so a few
rows tell: where a share f of all rows is wrong, n samples find one with probability 1 - (1 - f)^n.
"""

from collections.abc import Sequence
from random import Random
from typing import Final

import numpy as np

from brain.knowledge.chunk import Vector
from brain.knowledge.embedding import EmbeddingClient
from worker.model import AuditedChunk

SAME: Final = 0.95
"""The least cosine of two embeddings of one text by one model."""

A_FEW: Final = 8
"""Vectors that are looked at where nobody said how many: less than a hundredth of a cent at a provider, past every
budget and limit. Where a tenth of all rows is wrong they tell with probability 0.57, where half is, with 0.996."""

REQUEST: Final = 64
"""Texts of one request: at 512 tokens each, far below any provider's limit."""


class VectorSample:
    """Keeps `size` of the rows it is offered, each with the same chance (Vitter's algorithm R)."""

    def __init__(self, size: int, rng: Random) -> None:
        self._size = size
        self._rng = rng
        self._offered = 0
        self._rows: list[AuditedChunk] = []

    @property
    def rows(self) -> Sequence[AuditedChunk]:
        """The rows it holds."""
        return self._rows

    def offer(self, row: AuditedChunk) -> None:
        """Perhaps keep a row, in place of another."""
        self._offered += 1
        if len(self._rows) < self._size:
            self._rows.append(row)
        elif (place := self._rng.randrange(self._offered)) < self._size:
            self._rows[place] = row

    async def foreign(self, client: EmbeddingClient) -> Sequence[AuditedChunk]:
        """The rows whose vector is not the one that the client's model gives. Raises what the client raises."""
        found: list[AuditedChunk] = []
        for start in range(0, len(self._rows), REQUEST):
            rows = self._rows[start : start + REQUEST]
            embedded = await client.embed([row.text for row in rows])
            pairs = zip(rows, embedded.vectors, strict=True)
            found += [row for row, vector in pairs if row.vector is None or _cosine(row.vector, vector) < SAME]
        return found


def _cosine(one: Vector, other: Vector) -> float:
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))
