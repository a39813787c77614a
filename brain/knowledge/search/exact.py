"""Exact search in this process: every chunk's vector is compared. For servers without vector search.

Loads id, sport, document type and vector of every chunk of the pinned collection once, at the first search; the texts
of the hits are fetched by id, so they are as fresh as the database even when the vectors are a moment old.

Measured on 2 cores with 10,000 chunks (numpy 2.4, random vectors): building the table takes 0.1 s after the find, a
query with or without a filter what the bare product of matrix and vector takes, 8 ms at 1,536 numbers (`tests/bench`);
61 MB at 1,536 numbers.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pymongo
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.pin import Pin
from brain.knowledge.search import Engine, Filter, Hit
from brain.knowledge.search import vectors as arithmetic

_LOADED: Final = {"sport": 1, "docType": 1, "model": 1, "embedding": 1}
_LOAD_SECONDS: Final = 60.0
_FETCH_SECONDS: Final = 10.0
_BATCH: Final = 1000
_FEW: Final = 16
"""Of so many rows one must pass the filter at the most, or comparing all is faster than copying those that pass."""


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Chunks in memory, in the order of their ids: one row of `matrix` (unit vectors) each.

    `skipped` counts chunks that cannot be compared: another model's, another width, all zero.
    """

    ids: tuple[str, ...]
    matrix: Vector
    sports: tuple[object, ...]
    doc_types: tuple[object, ...]
    skipped: int

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, object]], pin: Pin) -> "VectorTable":
        """Read rows that hold `_id`, `sport`, `docType`, `model` and `embedding`."""
        kept: list[tuple[str, object, object, Vector]] = []
        for row in rows:
            vector = arithmetic.stored(row.get("embedding"), pin.dimensions) if row.get("model") == pin.model else None
            if vector is not None:
                kept.append((str(row["_id"]), row.get("sport"), row.get("docType"), vector))
        kept.sort(key=lambda item: item[0])
        return cls(
            ids=tuple(item[0] for item in kept),
            matrix=np.stack([item[3] for item in kept]) if kept else np.empty((0, pin.dimensions), np.float32),
            sports=tuple(item[1] for item in kept),
            doc_types=tuple(item[2] for item in kept),
            skipped=len(rows) - len(kept),
        )

    def nearest(self, query: Vector, limit: int, where: Filter) -> list[tuple[str, float]]:
        """Ids and scores of the best `limit` rows that the filter lets through: by score, then by id."""
        allowed = self._allowed(where)
        if allowed is None:
            values = arithmetic.scores(self.matrix, query)
        elif len(allowed) * _FEW < len(self.ids):
            values = arithmetic.scores(self.matrix[allowed], query)
        else:
            values = arithmetic.scores(self.matrix, query)[allowed]
        if 0 < limit < len(values):
            least = np.partition(values, len(values) - limit)[len(values) - limit]
            near = np.flatnonzero(values >= least)  # with every tie of the last place, so that the id decides
        else:
            near = np.arange(len(values))
        best = near[np.argsort(-values[near], kind="stable")][:limit]  # stable: rows are in the order of ids already
        rows = best if allowed is None else allowed[best]
        return [(self.ids[row], float(value)) for row, value in zip(rows, values[best], strict=True)]

    def _allowed(self, where: Filter) -> npt.NDArray[np.intp] | None:
        """The rows that the filter lets through, None when it lets all through."""
        passes: npt.NDArray[np.bool_] | None = None
        for wanted, column in ((where.sport, self.sports), (where.doc_type, self.doc_types)):
            if wanted is not None:
                equal = np.fromiter((value == wanted for value in column), np.bool_, len(column))
                passes = equal if passes is None else passes & equal
        return None if passes is None else np.flatnonzero(passes)


class ExactSearch:
    """Exact search over one pinned chunk collection."""

    def __init__(self, collection: AsyncCollection[Row], pin: Pin) -> None:
        self._collection = collection
        self._pin = pin
        self._table: VectorTable | None = None
        self._loading = asyncio.Lock()

    @property
    def name(self) -> Engine:
        """Always exact."""
        return "exact"

    @property
    def skipped(self) -> int:
        """How many chunks could not be compared, as of the load."""
        return 0 if self._table is None else self._table.skipped

    async def search(self, vector: Vector, limit: int, where: Filter) -> Sequence[Hit]:
        """The nearest chunks. A chunk that was deleted or moved out of the filter since the load is not returned."""
        query = arithmetic.checked_query(vector, self._pin.dimensions)
        table = await self._loaded()
        nearest = await asyncio.to_thread(table.nearest, query, limit, where)
        stored = await self._fetched([chunk_id for chunk_id, _ in nearest])
        hits = [Hit(chunk_id, score, stored[chunk_id]) for chunk_id, score in nearest if chunk_id in stored]
        return [hit for hit in hits if _matches(hit.fields, where)]

    async def _loaded(self) -> VectorTable:
        async with self._loading:
            if self._table is None:
                try:
                    with pymongo.timeout(_LOAD_SECONDS):
                        rows = await self._collection.find({}, _LOADED, batch_size=_BATCH).to_list()
                except PyMongoError as exc:
                    raise as_knowledge_error(exc, f"loading the vectors of {self._pin.collection}") from exc
                self._table = await asyncio.to_thread(VectorTable.of, rows, self._pin)
            return self._table

    async def _fetched(self, ids: Sequence[str]) -> Mapping[str, Mapping[str, object]]:
        if not ids:
            return {}
        try:
            with pymongo.timeout(_FETCH_SECONDS):
                rows = await self._collection.find({"_id": {"$in": list(ids)}}, {"embedding": 0}).to_list()
        except PyMongoError as exc:
            raise as_knowledge_error(exc, f"fetching chunks of {self._pin.collection}") from exc
        return {str(row.pop("_id")): row for row in rows}


def _matches(fields: Mapping[str, object], where: Filter) -> bool:
    return where.sport in {None, fields.get("sport")} and where.doc_type in {None, fields.get("docType")}
