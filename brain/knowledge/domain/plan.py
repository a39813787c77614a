"""What a rider's plan allows: the numbers and rules are those by which the backend refuses.

The checks are `count >= limit`, before the write, as the backend's are. The hidden bucket of saved spots is no named
list: it counts neither among the lists nor against the spots of one list, but its spots are part of the total.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import document_id

FREE_LISTS: Final = 3
"""Named spot lists on the free plan."""
FREE_SPOTS_A_LIST: Final = 5
FREE_SPOTS: Final = 15
"""Spots over all lists, the saved ones included."""
_PAYING: Final = ("active", "canceled")  # canceled: paid until the period ends, which nobody checks


@dataclass(frozen=True, slots=True)
class SpotList:
    """One list of spots as the rules see it; `saved` marks the hidden bucket."""

    name: str
    spots: frozenset[object]
    saved: bool = False


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit of the free plan that one more would exceed: how many of what are allowed, and how many there are."""

    what: str
    limit: int
    current: int


def is_premium(user: Mapping[str, object] | None) -> bool:
    """Plan premium and status active or canceled; for an admin with an override, what the override says."""
    if user is None:
        return False
    subscription = Fields(user).child("subscription")
    override = subscription.raw("adminOverride")
    if user.get("role") == "admin" and override in ("free", "premium"):
        return override == "premium"
    return subscription.raw("plan") == "premium" and subscription.raw("status") in _PAYING


def spot_list_of(row: Mapping[str, object]) -> SpotList:
    """A row of `spotlists`; an odd row is a list with the spots that can be read."""
    name, stored = row.get("name"), row.get("spotIds")
    items = cast("Sequence[object]", stored) if isinstance(stored, list) else ()
    spots = frozenset(found for item in items if (found := document_id(item)) is not None)
    return SpotList(name if isinstance(name, str) else "", spots, saved=row.get("isDefaultSaved") is True)


def limit_reached(lists: Sequence[SpotList], target: SpotList | None) -> Reached | None:
    """The limit that stops a rider on the free plan from adding a spot to `target`, or to a new named list (None).

    `lists` are all of the rider's lists, the target among them.
    """
    named = sum(not one.saved for one in lists)
    if target is None and named >= FREE_LISTS:
        return Reached("named spot lists", FREE_LISTS, named)
    if target is not None and not target.saved and len(target.spots) >= FREE_SPOTS_A_LIST:
        return Reached("spots in one list", FREE_SPOTS_A_LIST, len(target.spots))
    total = sum(len(one.spots) for one in lists)
    return Reached("spots over all lists", FREE_SPOTS, total) if total >= FREE_SPOTS else None
