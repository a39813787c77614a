"""Who is premium, and where the free plan ends: each limit just below, at and beyond its border."""

from typing import Any

import pytest
from bson import ObjectId

from brain.knowledge.domain.plan import (
    FREE_LISTS,
    FREE_SPOTS,
    FREE_SPOTS_A_LIST,
    Reached,
    SpotList,
    is_premium,
    limit_reached,
    spot_list_of,
)


@pytest.mark.parametrize(
    ("user", "premium"),
    [
        (None, False),
        ({}, False),
        ({"subscription": None}, False),
        ({"subscription": "premium"}, False),
        ({"subscription": ["premium", "active"]}, False),
        ({"subscription": {"plan": "free", "status": "active"}}, False),
        ({"subscription": {"plan": "premium"}}, False),
        ({"subscription": {"plan": "premium", "status": None}}, False),
        ({"subscription": {"plan": "premium", "status": "past_due"}}, False),
        ({"subscription": {"plan": "premium", "status": ["active"]}}, False),
        ({"subscription": {"plan": "premium", "status": "active"}}, True),
        ({"subscription": {"plan": "premium", "status": "canceled", "currentPeriodEnd": "Invalid Date"}}, True),
        ({"role": "admin", "subscription": {"plan": "premium", "status": "active", "adminOverride": "free"}}, False),
        ({"role": "admin", "subscription": {"plan": "free", "adminOverride": "premium"}}, True),
        ({"role": "admin", "subscription": {"plan": "premium", "status": "active", "adminOverride": None}}, True),
        ({"role": "admin", "subscription": {"plan": "premium", "status": "active", "adminOverride": True}}, True),
        ({"role": "admin", "subscription": {"adminOverride": {"plan": "premium"}}}, False),
        ({"role": "user", "subscription": {"plan": "free", "adminOverride": "premium"}}, False),
        ({"subscription": {"plan": "premium", "status": "active", "adminOverride": "free"}}, True),
    ],
)
def test_premium(user: dict[str, Any] | None, premium: bool) -> None:  # noqa: FBT001 - a table's column
    """Partial and odd subscriptions are free; an override counts for admins alone."""
    assert is_premium(user) is premium


def a_list(spots: int, *, saved: bool = False) -> SpotList:
    """A list of so many spots."""
    return SpotList("", frozenset(ObjectId() for _ in range(spots)), saved)


@pytest.mark.parametrize(("named", "refused"), [(0, False), (2, False), (3, True), (4, True)])
def test_named_lists(named: int, refused: bool) -> None:  # noqa: FBT001 - a table's column
    """A third list may be made, a fourth may not; the bucket is none of them."""
    lists = [*[a_list(1) for _ in range(named)], a_list(1, saved=True)]
    found = limit_reached(lists, None)
    assert found == (Reached("named spot lists", FREE_LISTS, named) if refused else None)


@pytest.mark.parametrize(("spots", "refused"), [(0, False), (4, False), (5, True), (6, True)])
def test_spots_of_a_list(spots: int, refused: bool) -> None:  # noqa: FBT001 - a table's column
    """A fifth spot fits, a sixth does not; the bucket has no such limit."""
    target, bucket = a_list(spots), a_list(spots, saved=True)
    found = limit_reached([target], target)
    assert found == (Reached("spots in one list", FREE_SPOTS_A_LIST, spots) if refused else None)
    assert limit_reached([bucket], bucket) is None


@pytest.mark.parametrize(("saved", "refused"), [(5, False), (6, True), (7, True)])
def test_spots_in_all(saved: int, refused: bool) -> None:  # noqa: FBT001 - a table's column
    """The fifteenth fits, the sixteenth does not, wherever it is to go; the bucket's spots count too."""
    bucket, target = a_list(saved, saved=True), a_list(4)
    lists = [bucket, target, a_list(5)]
    expected = Reached("spots over all lists", FREE_SPOTS, 9 + saved) if refused else None
    assert limit_reached(lists, target) == limit_reached(lists, bucket) == limit_reached(lists, None) == expected


def test_a_row_becomes_a_list() -> None:
    """Ids of every shape, each once; what is no id is no spot."""
    one = ObjectId()
    row = {"name": "Rain plan", "spotIds": [one, str(one), ObjectId(), None, 7], "isDefaultSaved": False}
    assert spot_list_of(row).name == "Rain plan"
    assert len(spot_list_of(row).spots) == 2
    assert one in spot_list_of(row).spots


@pytest.mark.parametrize("row", [{}, {"name": None, "spotIds": None}, {"name": 7, "spotIds": "none"}])
def test_odd_rows_are_empty_lists(row: dict[str, Any]) -> None:
    """Nothing raises, and only a true flag makes the bucket."""
    assert spot_list_of(row) == SpotList("", frozenset(), saved=False)
    assert not spot_list_of(row | {"isDefaultSaved": "true"}).saved
