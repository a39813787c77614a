"""Chunks in memory: their unit vectors in one matrix, and what to filter by beside it. No I/O.

Measured on 2 cores with 10,000 chunks of 1,536 numbers (numpy 2.4, random vectors, `tests/bench`): a query takes 2 ms
on quiet cores, as the bare product of matrix and vector does, and a fifth of that product's time on busy ones; 61 MB.
"""

import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from brain.knowledge.chunk import Vector
from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.pin import Pin
from brain.knowledge.search import Filter
from brain.knowledge.search import vectors as arithmetic

NEEDED: Final = {"docKey": 1, "sport": 1, "docType": 1, "model": 1, "embedding": 1}
"""The fields of a chunk row that a table reads."""

MOST_BYTES: Final = 2 << 30
"""Of a matrix: 350,000 chunks at 1,536 numbers. Beyond that an exact scan takes longer than a rider waits."""

_FEW: Final = 16
"""Of so many rows one must pass the filter at the most, or comparing all is faster than copying those that pass."""

_NOTHING: Final = 0
"""The code of a value that no filter can name."""

_LEAST_ROOM: Final = 64
_SPARSE: Final = 4
"""Of a matrix whose rows are a fourth of its room or fewer, the room is given back."""


class VectorTable:
    """The chunks of one pin that can be compared: of its model, its width, not all zero, finite; the rest is skipped.

    Rows lie densely, so a query is one product: the place of a removed row is taken by the last. Threads may call at
    once; each sees all of a replacement or nothing of it.
    """

    def __init__(self, pin: Pin, room: int = 0) -> None:
        self._pin = pin
        self._lock = threading.Lock()
        self._ids: list[str] = []
        self._place: dict[str, int] = {}
        self._skipped: set[str] = set()
        self._owner: dict[str, str] = {}
        self._chunks: dict[str, set[str]] = defaultdict(set)
        self._codes: dict[str, int] = {}
        self._matrix: Vector = np.empty((0, pin.dimensions), np.float32)
        self._columns: npt.NDArray[np.int32] = np.empty((2, 0), np.int32)
        if room:
            self._make_room(room)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def skipped(self) -> int:
        """How many chunks cannot be compared."""
        return len(self._skipped)

    def owners(self, chunk_ids: Iterable[str]) -> set[str]:
        """The documents (`docKey`) that these chunks belong to, of those that the table knows."""
        with self._lock:
            return {self._owner[chunk_id] for chunk_id in chunk_ids if chunk_id in self._owner}

    def replace(self, owners: Collection[str], rows: Sequence[Mapping[str, object]]) -> None:
        """Put these rows (the fields NEEDED) in the place of all chunks of these documents.

        A row without `docKey` is a document of its own, named by its id. Raises ConfigurationFault when the matrix
        would be larger than MOST_BYTES; nothing is changed then.
        """
        read = [(str(row["_id"]), row, self._vector(row)) for row in rows]
        with self._lock:
            self._make_room(len(self._ids) + sum(chunk_id not in self._place for chunk_id, _, _ in read))
            former = {chunk_id for owner in owners for chunk_id in self._chunks.get(owner, ())}
            gone = former.difference(chunk_id for chunk_id, _, _ in read)
            for chunk_id in gone:
                self._remove(chunk_id)
            for chunk_id, row, vector in read:
                self._put(chunk_id, row, vector)
            if gone and len(self._matrix) > max(_LEAST_ROOM, _SPARSE * len(self._ids)):
                self._resize(len(self._ids))

    def nearest(self, query: Vector, limit: int, where: Filter) -> list[tuple[str, float]]:
        """Ids and scores of the best `limit` rows that the filter lets through: by score, then by id."""
        with self._lock:
            allowed = self._allowed(where)
            matrix = self._matrix[: len(self._ids)]
            if allowed is None:
                values = arithmetic.scores(matrix, query)
            elif len(allowed) * _FEW < len(matrix):
                values = arithmetic.scores(matrix[allowed], query)
            else:
                values = arithmetic.scores(matrix, query)[allowed]
            if limit < len(values):
                least = np.partition(values, len(values) - limit)[len(values) - limit]
                near = np.flatnonzero(values >= least)  # with every tie of the last place, so that the id decides
            else:
                near = np.arange(len(values))
            rows = near if allowed is None else allowed[near]
            found = [(self._ids[row], float(value)) for row, value in zip(rows, values[near], strict=True)]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:limit]

    def holds(self, chunk_id: str, query: Vector, where: Filter) -> bool:
        """Whether this chunk is here, passes the filter, and has this vector (unit length)."""
        with self._lock:
            place = self._place.get(chunk_id)
            allowed = None if place is None else self._allowed(where)
            if place is None or (allowed is not None and place not in allowed):
                return False
            return bool(arithmetic.scores(self._matrix[place : place + 1], query)[0] >= 1 - arithmetic.SAME)

    def _vector(self, row: Mapping[str, object]) -> Vector | None:
        if row.get("model") != self._pin.model:
            return None
        return arithmetic.stored(row.get("embedding"), self._pin.dimensions)

    def _allowed(self, where: Filter) -> npt.NDArray[np.intp] | None:
        """The rows that the filter lets through, None when it lets all through."""
        passes: npt.NDArray[np.bool_] | None = None
        for wanted, column in zip((where.sport, where.doc_type), self._columns[:, : len(self._ids)], strict=True):
            if wanted is not None:
                equal = column == self._codes.get(wanted, -1)
                passes = equal if passes is None else passes & equal
        return None if passes is None else np.flatnonzero(passes)

    def _put(self, chunk_id: str, row: Mapping[str, object], vector: Vector | None) -> None:
        owner = row.get("docKey")
        self._own(chunk_id, owner if isinstance(owner, str) else chunk_id)
        if vector is None:
            self._drop(chunk_id)
            self._skipped.add(chunk_id)
            return
        self._skipped.discard(chunk_id)
        place = self._place.get(chunk_id)
        if place is None:
            place = self._place[chunk_id] = len(self._ids)
            self._ids.append(chunk_id)
        self._matrix[place] = vector
        self._columns[:, place] = self._code(row.get("sport")), self._code(row.get("docType"))

    def _remove(self, chunk_id: str) -> None:
        self._own(chunk_id, None)
        self._skipped.discard(chunk_id)
        self._drop(chunk_id)

    def _own(self, chunk_id: str, owner: str | None) -> None:
        former = self._owner.pop(chunk_id, None)
        if former is not None:
            self._chunks[former].discard(chunk_id)
            if not self._chunks[former]:
                del self._chunks[former]
        if owner is not None:
            self._owner[chunk_id] = owner
            self._chunks[owner].add(chunk_id)

    def _drop(self, chunk_id: str) -> None:
        """Take a row out of the matrix; the last one moves to its place."""
        place = self._place.pop(chunk_id, None)
        if place is None:
            return
        last = self._ids.pop()
        if place < len(self._ids):
            end = len(self._ids)
            self._ids[place], self._place[last] = last, place
            self._matrix[place], self._columns[:, place] = self._matrix[end], self._columns[:, end]

    def _code(self, value: object) -> int:
        return self._codes.setdefault(value, len(self._codes) + 1) if isinstance(value, str) else _NOTHING

    def _make_room(self, rows: int) -> None:
        """Room for so many rows, and when there is none, for an eighth more."""
        room = len(self._matrix)
        if rows * self._pin.dimensions * 4 > MOST_BYTES:
            message = (
                f"{self._pin.collection} has more chunks than an exact search can hold ({rows:,} of"
                f" {self._pin.dimensions} numbers): use a server with vector search (VECTOR_SEARCH=atlas)"
            )
            raise ConfigurationFault(message)
        if rows > room:
            self._resize(rows + rows // 8)

    def _resize(self, room: int) -> None:
        kept = len(self._ids)
        matrix = np.empty((max(_LEAST_ROOM, room), self._pin.dimensions), np.float32)
        columns = np.zeros((2, len(matrix)), np.int32)
        matrix[:kept], columns[:, :kept] = self._matrix[:kept], self._columns[:, :kept]
        self._matrix, self._columns = matrix, columns
