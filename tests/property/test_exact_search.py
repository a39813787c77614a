"""The exact engine's arithmetic against a plain reading of its rules."""

import math

import numpy as np
from bson.binary import Binary, BinaryVectorDtype
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.knowledge.pin import Pin
from brain.knowledge.search import Filter
from brain.knowledge.search.table import VectorTable
from brain.knowledge.search.vectors import binary, checked_query, stored

PIN = Pin("m", 3)
# Whole numbers: equal vectors and ties are common, and rounding is not in the way.
VECTORS = st.lists(st.integers(-3, 3), min_size=3, max_size=3)
ROWS = st.dictionaries(
    st.text("abc", min_size=1, max_size=4),
    st.tuples(VECTORS, st.sampled_from(["bmx", "surfing", None]), st.sampled_from(["trick", "doc"])),
    max_size=30,
)


def _score(one: list[int], other: list[int]) -> float:
    cosine = sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))
    return (1 + cosine) / 2


@settings(deadline=None)
@given(
    ROWS,
    VECTORS.filter(any),
    st.integers(1, 35),
    st.sampled_from([None, "bmx", "mtb"]),
    st.sampled_from([None, "doc"]),
)
def test_nearest_is_a_sort(
    rows: dict[str, tuple[list[int], str | None, str]],
    query: list[int],
    limit: int,
    sport: str | None,
    doc_type: str | None,
) -> None:
    """The best rows that pass the filter, by score and then by id, whatever the limit and however many tie."""
    table = VectorTable(PIN)
    table.replace(
        (),
        [
            {"_id": key, "sport": s, "docType": d, "model": "m", "embedding": binary(np.array(v, np.float32))}
            for key, (v, s, d) in rows.items()
        ],
    )
    got = table.nearest(checked_query(np.array(query, np.float32), 3), limit, Filter(sport, doc_type))
    passing = [
        (key, _score(v, query))
        for key, (v, s, d) in rows.items()
        if any(v) and sport in {None, s} and doc_type in {None, d}
    ]
    expected = sorted(passing, key=lambda item: (-round(item[1], 6), item[0]))[:limit]
    assert [key for key, _ in got] == [key for key, _ in expected]
    assert np.allclose([score for _, score in got], [score for _, score in expected], atol=2e-6)
    assert table.skipped == sum(not any(v) for v, _, _ in rows.values())


def test_what_is_a_stored_vector() -> None:
    """Binary float32 vectors and plain lists are; other widths, element types, zeros and nonsense are not."""
    right = np.array([3, 0, 4], np.float32)
    for value in (binary(right), [3, 0.0, 4], list(map(float, right))):
        vector = stored(value, 3)
        assert vector is not None
        assert np.allclose(vector, [0.6, 0, 0.8])
        assert vector.dtype == np.float32
    wrong: list[object] = [
        None,
        "vector",
        [3, 0],
        [3, 0, "4"],
        [0, 0, 0],
        [float("nan"), 0, 0],
        [float("inf"), 0, 0],
        binary(right[:2]),
        binary(right * 0),
        Binary.from_vector([1, 2, 3], BinaryVectorDtype.INT8),
        Binary(b"", 9),
        Binary(b"\x27", 9),
        Binary(b"\x27\x00" + b"\x00" * 11, 9),
        Binary(b"\x27\x00" + right.tobytes(), 0),
    ]
    assert [stored(value, 3) for value in wrong] == [None] * len(wrong)
