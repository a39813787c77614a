"""What is asked of Atlas, and what its silence means."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
from bson.binary import BinaryVectorDtype
from pymongo.asynchronous.collection import AsyncCollection

from brain.knowledge.connect import Row
from brain.knowledge.errors import IndexMissing, Unavailable
from brain.knowledge.pin import Pin
from brain.knowledge.search import Filter
from brain.knowledge.search.atlas import AtlasSearch, pipeline

PIN = Pin("m", 3)
VECTOR = np.array([1, 0, 0], np.float32)


def _stage(limit: int, where: Filter, *, exact: bool) -> dict[str, Any]:
    return cast("dict[str, Any]", pipeline(PIN, VECTOR, limit, where, exact=exact)[0]["$vectorSearch"])


def test_exact_comes_without_candidates_and_candidates_in_bounds() -> None:
    """The engine refuses both and neither; candidates are 20 a hit and at most 10,000."""
    exact = _stage(5, Filter(), exact=True)
    assert exact["exact"] is True
    assert "numCandidates" not in exact
    assert "filter" not in exact
    for limit, candidates in ((1, 20), (50, 1000), (900, 10_000)):
        near = _stage(limit, Filter(), exact=False)
        assert "exact" not in near
        assert near["numCandidates"] == candidates >= limit


def test_query_vector_and_filter() -> None:
    """A binary float32 vector as the chunks hold; equality on the two filter fields."""
    stage = _stage(5, Filter("bmx", "trick"), exact=True)
    assert stage["index"] == PIN.index
    assert stage["queryVector"].as_vector().dtype == BinaryVectorDtype.FLOAT32
    assert stage["filter"] == {"sport": {"$eq": "bmx"}, "docType": {"$eq": "trick"}}


class _Cursor:
    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    async def to_list(self) -> list[Row]:
        return self._rows


class _Server:
    """A stand-in for a collection on Atlas, which cannot run here: canned rows a stage."""

    def __init__(self, rows: list[Row], indexes: list[Row], count: int = 5) -> None:
        self._answers: Mapping[str, list[Row]] = {"$vectorSearch": rows, "$listSearchIndexes": indexes}
        self._count = count
        self.asked: list[dict[str, Any]] = []

    async def estimated_document_count(self) -> int:
        return self._count

    async def aggregate(self, stages: list[dict[str, Any]]) -> _Cursor:
        self.asked.append(stages[0])
        return _Cursor(self._answers[next(iter(stages[0]))])


def _search(server: _Server) -> AtlasSearch:
    return AtlasSearch(cast("AsyncCollection[Row]", server), PIN)


async def test_no_rows_are_explained() -> None:
    """Atlas answers a missing index, and one being built, with no rows and no error."""
    with pytest.raises(IndexMissing, match="The vector index"):
        await _search(_Server([], [])).search(VECTOR, 5, Filter())
    with pytest.raises(Unavailable, match="BUILDING"):
        await _search(_Server([], [{"queryable": False, "status": "BUILDING"}])).search(VECTOR, 5, Filter())
    assert not await _search(_Server([], [{"queryable": True, "status": "READY"}])).search(VECTOR, 5, Filter())


async def test_hits_are_in_the_common_order() -> None:
    """By score, then by id; the count decides between exact and candidates."""
    rows: list[Row] = [{"_id": i, "_score": s, "text": i} for i, s in (("b", 0.9), ("a", 0.9), ("c", 0.95))]
    for count, exact in ((9_999, True), (10_000, False)):
        server = _Server([dict(row) for row in rows], [], count)
        hits = await _search(server).search(VECTOR, 5, Filter())
        assert [(hit.id, hit.score, hit.fields) for hit in hits] == [
            ("c", 0.95, {"text": "c"}),
            ("a", 0.9, {"text": "a"}),
            ("b", 0.9, {"text": "b"}),
        ]
        assert server.asked[0]["$vectorSearch"].get("exact", False) is exact
    with pytest.raises(ValueError, match="dimensions"):
        await _search(_Server([], [])).search(VECTOR[:2], 5, Filter())
