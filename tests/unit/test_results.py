"""The one boundary where the database's values become JSON: always valid, always small enough, never silently cut."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pytest
from bson import Binary, DBRef, Decimal128, Int64, MaxKey, ObjectId, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from brain.guard import LABEL
from brain.results import TooLarge, encoded, refusal
from tests.support.tool_calls import Said

MOST: Final = 4_096
ID: Final = "64b000000000000000000001"


def told(value: object, most: int = MOST) -> dict[str, Any]:
    """The envelope of a result that holds this, as a strict JSON reader sees it."""
    text = encoded(Said(words=value), most).text
    assert text.isascii()
    assert len(text) <= most

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads(text, parse_constant=refuse)
    assert found.pop("label") == LABEL
    assert found["ok"] is True
    return found


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (ObjectId(ID), ID),
        (datetime(2026, 11, 30, 12, 0, 5), "2026-11-30T12:00:05Z"),  # noqa: DTZ001 as the driver may decode it
        (datetime(2026, 11, 30, 13, tzinfo=timezone(timedelta(hours=1))), "2026-11-30T12:00:00Z"),
        (date(2026, 11, 30), "2026-11-30"),
        (Decimal128("3.5"), 3.5),
        (Decimal128("7"), 7),
        (Decimal("1e3"), 1000),
        (Int64(5), 5),
        (2**53, 2**53),
        (2**53 + 1, "9007199254740993"),
        (-(2**63), "-9223372036854775808"),
        (True, True),
        (1.5, 1.5),
        (b"\x00\xff", "AP8="),
        (Binary(b"\x01", 9), "AQ=="),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (DBRef("users", ObjectId(ID)), ID),
        (Timestamp(7, 2), {"t": 7, "i": 2}),
        ({"b", "a"}, ["a", "b"]),
        (("a", None), ["a", None]),
        ({"a": None, "b": float("nan"), 5: "x"}, {"5": "x"}),
        ("half \ud800 pair", "half \ufffd pair"),
        ("kick\u200bflip\u202e \U000e0041 \u2028 👩\u200d🚀", "kickflip  \n 👩\u200d🚀"),
    ],
)
def test_each_kind_of_value_has_one_form(stored: object, shown: object) -> None:
    """ObjectId, dates, decimals, bytes, surrogates."""
    assert told(stored) == {"ok": True, "data": {"words": shown}}


@pytest.mark.parametrize(
    "nothing", [float("nan"), float("inf"), Decimal128("sNaN"), Decimal("-Infinity"), Decimal128("1E+6144"), None]
)
def test_what_is_not_finite_is_absent(nothing: object) -> None:
    """JSON has no word for it."""
    assert told(nothing) == {"ok": True, "data": {}}


def test_a_value_without_a_form_is_a_bug() -> None:
    """It is noticed, not told as text."""
    with pytest.raises(TypeError, match="MaxKey"):
        told(MaxKey())


def test_a_long_list_loses_its_end_and_says_so() -> None:
    """The first items are the best ones."""
    found = told([{"name": f"trick {n}"} for n in range(500)])
    kept = found["data"]["words"]
    assert kept == [{"name": f"trick {n}"} for n in range(len(kept))]
    assert len(kept) > 100
    assert found["truncated"] == f"left out for length: {500 - len(kept)} of words; ask for less at a time to see it"


def test_the_longest_list_loses_first() -> None:
    """A short one beside it is left whole."""
    found = told({"many": ["x" * 100] * 100, "few": ["a", "b", "c"]})
    assert found["data"]["words"]["few"] == ["a", "b", "c"]
    assert "of many" in found["truncated"]


def test_then_texts_are_cut() -> None:
    """All of them to the same length; addresses and ids are left whole."""
    address = "https://site.example/" + "a" * 200
    found = told({"long": "word " * 5_000, "short": "a few words", "url": address})
    words = found["data"]["words"]
    assert words["short"] == "a few words"
    assert words["url"] == address
    assert words["long"].startswith("word word")
    assert words["long"].endswith("…")
    assert "the ends of 1 texts" in found["truncated"]


def test_one_item_stays_even_when_it_must_be_cut() -> None:
    """A single long hit is better than none."""
    found = told([{"text": "word " * 4_000}, {"text": "word " * 4_000}])
    assert len(found["data"]["words"]) == 1


@pytest.mark.parametrize(
    "huge",
    [
        ["x" * 100_000] * 1_000,  # 100 MB
        "é" * 50_000_000,
        [[["a"] * 200] * 200] * 200,
        list(range(1_000_000)),
        {"a": {"b": ["word " * 100] * 2_000}},
    ],
)
def test_a_huge_result_is_shortened_quickly(huge: object) -> None:
    """Before it is turned into text."""
    assert "left out for length" in told(huge)["truncated"]


@pytest.mark.parametrize("hopeless", [{f"key {n}": n for n in range(900)}, {f"key {n}": n for n in range(2_000)}])
def test_what_cannot_be_shortened_is_refused(hopeless: object) -> None:
    """Keys are the shape of a result: they are not dropped."""
    with pytest.raises(TooLarge):
        told(hopeless)


def test_a_value_that_is_too_deep_is_refused() -> None:
    """No result is."""
    deep: list[Any] = []
    for _ in range(50):
        deep = [deep]
    with pytest.raises(TooLarge):
        told(deep)


def test_a_refusal_is_json_too() -> None:
    """ASCII, without hidden characters."""
    assert refusal("internal", "bad \u202e é", retryable=False) == (
        '{"ok":false,"error":{"code":"internal","message":"bad  \\u00e9","retryable":false}}'
    )


SCALARS: Final = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary(max_size=50)
    | st.datetimes(timezones=st.just(UTC))
    | st.decimals()
)
VALUES: Final = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=20), inner), max_leaves=60
)


@given(VALUES, st.integers(1_024, 3_000))
def test_any_value_becomes_small_valid_json(value: object, most: int) -> None:
    """Or is refused, and then it is really big."""
    try:
        told(value, most)
    except TooLarge:
        assert len(repr(value)) > most // 10
