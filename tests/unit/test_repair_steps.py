"""A repair goes in bounded steps, and a row goes with its document."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from worker.audit.repair import MOST, MOST_BYTES, steps
from worker.audit.verify import BadRow, Kind, Suspects
from worker.model import DocKey, typed_id


def _key(number: int) -> DocKey:
    return DocKey.of("tricks", number)


def _suspects(documents: list[int], rows: list[tuple[object, int | None]]) -> Suspects:
    differing: dict[DocKey, Counter[Kind]] = {_key(number): Counter({"stale": 1}) for number in documents}
    bad = [BadRow(id_, "tricks", "stale", None if owner is None else _key(owner)) for id_, owner in rows]
    return Suspects(differing, {typed_id(row.id): row for row in bad})


@given(
    documents=st.lists(st.integers(0, 3000), unique=True, max_size=1500),
    rows=st.lists(st.tuples(st.integers(0, 5000), st.none() | st.integers(0, 3000)), max_size=1500),
)
def test_every_step_is_bounded_and_none_left_out(documents: list[int], rows: list[tuple[int, int | None]]) -> None:
    """Each document and each row is in a step, each row in one, and with its owner."""
    suspects = _suspects(documents, list(rows))
    done = list(steps(suspects))
    assert all(0 < len(keys) + len(discard) <= MOST for keys, discard in done)
    assert {key for keys, _ in done for key in keys} == set(suspects.to_look_at)
    removed = [id_ for _, discard in done for id_ in discard]
    assert sorted(str(id_) for id_ in removed) == sorted(str(row.id) for row in suspects.rows.values())
    for keys, discard in done:
        owners = {row.owner for row in suspects.rows.values() if row.id in discard and row.owner is not None}
        assert owners <= set(keys)


def test_nothing_to_mend_is_no_step() -> None:
    """No request for nothing."""
    assert list(steps(Suspects())) == []


def test_long_ids_make_small_steps() -> None:
    """A request must fit into one document."""
    long = "x" * (MOST_BYTES // 3)
    done = list(steps(_suspects([], [(f"{number}{long}", None) for number in range(7)])))
    assert [len(discard) for _, discard in done] == [2, 2, 2, 1]
