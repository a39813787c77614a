"""The table in memory against a plain dictionary, through any sequence of replacements."""

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.search import Filter
from brain.knowledge.search import table as module
from brain.knowledge.search.table import VectorTable
from brain.knowledge.search.vectors import checked_query, stored
from tests.support.search_stage import PIN, chunk, vector

Row = dict[str, Any]
EAST = vector(1)

OWNERS = st.sampled_from(["t/a", "t/b", "t/c", "t/d"])
VECTORS = st.one_of(st.lists(st.integers(-2, 2), min_size=4, max_size=4), st.just([1, 2]), st.none())


def row_of(owner: str, part: int, numbers: object, sport: str | None, model: str) -> Row:
    """A chunk of a document."""
    return chunk(f"{owner}/{part}", numbers, sport, model=model)


ROWS = st.builds(
    row_of,
    OWNERS,
    st.integers(0, 3),
    VECTORS,
    st.sampled_from(["bmx", "surfing", None]),
    st.sampled_from([PIN.model, PIN.model, PIN.model, "another/model"]),
)
CHANGES = st.lists(st.tuples(st.sets(OWNERS, max_size=3), st.lists(ROWS, max_size=8)), max_size=12)


def comparable(row: Mapping[str, Any]) -> bool:
    """Whether a row has a vector of this pin."""
    return row["model"] == PIN.model and stored(row["embedding"], PIN.dimensions) is not None


@settings(deadline=None)
@given(CHANGES, st.sampled_from([Filter(), Filter("bmx"), Filter("surfing", "trick"), Filter("chess")]))
def test_any_sequence_of_replacements(changes: list[tuple[set[str], list[Row]]], where: Filter) -> None:
    """After each: the same rows, the same order, the same count of those that cannot be compared."""
    table = VectorTable(PIN)
    model: dict[str, Row] = {}
    for owners, rows in changes:
        table.replace(owners, rows)
        model = {id_: row for id_, row in model.items() if row["docKey"] not in owners}
        model |= {row["_id"]: row for row in rows}
        fit = {id_: row for id_, row in model.items() if comparable(row)}
        assert len(table) == len(fit)
        assert table.skipped == len(model) - len(fit)
        assert table.owners(model) == {row["docKey"] for row in model.values()}
        passing = {
            id_ for id_, row in fit.items() if where.sport in {None, row["sport"]} and where.doc_type in {None, "trick"}
        }
        found = table.nearest(EAST, 100, where)
        assert {id_ for id_, _ in found} == passing
        assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))
        for id_, score in found:
            unit = stored(fit[id_]["embedding"], PIN.dimensions)
            assert unit is not None
            assert abs(score - (1 + float(unit @ EAST)) / 2) < 1e-5
            assert table.holds(id_, unit, where)


def test_room_is_taken_and_given_back() -> None:
    """By the chunk, not by the number of changes."""
    table = VectorTable(PIN)
    for round_ in range(5):
        table.replace(("t/o",), [chunk(f"t/o/{n}", EAST) for n in range(1000 * round_)])
        assert 1000 * round_ <= len(table._matrix) <= max(64, 4 * 1000 * max(1, round_))  # pyright: ignore[reportPrivateUsage]
    table.replace(("t/o",), [])
    assert len(table._matrix) == 64  # pyright: ignore[reportPrivateUsage]


def test_more_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said as what it is, before memory is taken; what was there stays."""
    monkeypatch.setattr(module, "MOST_BYTES", 100 * 4 * PIN.dimensions)
    table = VectorTable(PIN)
    table.replace((), [chunk(f"t/{n}/full", EAST) for n in range(60)])
    with pytest.raises(ConfigurationFault, match="VECTOR_SEARCH=atlas"):
        table.replace((), [chunk(f"u/{n}/full", EAST) for n in range(41)])
    assert len(table.nearest(EAST, 1000, Filter())) == 60
    with pytest.raises(ConfigurationFault, match="101"):
        VectorTable(PIN, room=101)


def test_a_look_beside_replacements_is_never_torn() -> None:
    """Threads that look while a document is exchanged see one of its states."""
    table = VectorTable(PIN)
    states = [[chunk(f"t/o/{name}{n}", EAST) for n in range(size)] for name, size in (("a", 3), ("b", 200), ("c", 40))]
    table.replace((), states[0])
    allowed = {frozenset(row["_id"] for row in rows) for rows in states}
    seen: set[frozenset[str]] = set()
    ended = threading.Event()
    query = checked_query(EAST, PIN.dimensions)

    def look() -> None:
        while not ended.is_set():
            seen.add(frozenset(id_ for id_, _ in table.nearest(query, 1000, Filter())))

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(300):
        table.replace(("t/o",), states[number % 3])
    ended.set()
    for thread in threads:
        thread.join()
    assert seen <= allowed
    assert np.isfinite(table._matrix[: len(table)]).all()  # pyright: ignore[reportPrivateUsage]
