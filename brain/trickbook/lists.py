"""A rider's trick lists and what is on them, read from rows of every age.

Membership is stored twice, by two writes that no transaction joined: a trick's `list_id` (text) and the list's `tricks`
array. The oldest lists hold the tricks themselves.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from bson import ObjectId

from brain.knowledge.connect import Row
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import object_id, owner_queries, owns
from brain.knowledge.domain.statuses import Progress, progress
from brain.tool import LONGEST_WORDS, ToolContext

MOST_LISTS: Final = 500
"""Lists of a rider that are read."""
MOST_TRICKS: Final = 5_000
"""Tricks that are read at once."""
LONGEST_NAME: Final = LONGEST_WORDS
"""As long as one in an argument: the same name asked for again must be recognised."""

_LIST: Final[Mapping[str, Any]] = {"name": 1, "user": 1, "userId": 1, "tricks": 1, "createdAt": 1}
_TRICK: Final[Mapping[str, Any]] = {"name": 1, "list_id": 1, "checked": 1, "createdAt": 1, "updatedAt": 1}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ListedTrick:
    """A trick on a list; `in_array` when the list's array names it too, `changed` when it was last written (UTC)."""

    id: ObjectId
    name: str
    progress: Progress
    in_array: bool
    changed: datetime | None = None


async def own_lists(context: ToolContext) -> list[Row]:
    """The rider's lists, the oldest first; those whose owner cannot be read are nobody's."""
    rows: dict[ObjectId, Row] = {}
    for query in owner_queries(context.rider):
        found = context.database["tricklists"].find(query, _LIST, session=context.session)
        rows |= {row["_id"]: row for row in await found.limit(MOST_LISTS).to_list()}
    return sorted((row for row in rows.values() if owns(context.rider, row)), key=_age)


async def tricks_on(context: ToolContext, lists: Sequence[Row]) -> dict[ObjectId, list[ListedTrick]]:
    """What is on each of these lists of one rider: what the array names, in its order, then what only says it is there.

    A row that says it is on somebody else's list is theirs, whatever the array says.
    """
    entries = {row["_id"]: entries_of(row) for row in lists}
    claimed: dict[str, list[Row]] = {str(id_): [] for id_ in entries}
    for row in await _rows(context, {"list_id": {"$in": list(claimed)}}):
        if isinstance(row["list_id"], str):  # an array of ids meets the query too, and is on no list
            claimed[row["list_id"]].append(row)
    known = {row["_id"]: row for rows in claimed.values() for row in rows}
    strays = {id_ for array in entries.values() for id_ in array if id_ not in known}
    if strays:  # a row without `list_id`: of the old app, or half written
        known |= {row["_id"]: row for row in await _rows(context, {"_id": {"$in": list(strays)}, "list_id": None})}
    return {id_: _joined(array, known, claimed[str(id_)]) for id_, array in entries.items()}


def entries_of(row: Row) -> dict[ObjectId, Fields]:
    """The list's array by id: each entry as it is embedded, or empty."""
    array: object = row.get("tricks")
    found: dict[ObjectId, Fields] = {}
    for entry in cast("list[object]", array) if isinstance(array, list) else ():
        id_ = object_id(entry)
        if id_ is not None:
            embedded = Fields(cast("Mapping[str, object]", entry)) if isinstance(entry, Mapping) else Fields({})
            found.setdefault(id_, embedded)
    return found


def landed(tricks: Iterable[ListedTrick]) -> int:
    """How many of them are landed; a list's own `completed` is always 0."""
    return sum(trick.progress == "landed" for trick in tricks)


def list_name(row: Row) -> str:
    """Its name, or a stand-in."""
    return Fields(row).line("name")[:LONGEST_NAME] or "A list"


async def _rows(context: ToolContext, query: Mapping[str, Any]) -> list[Row]:
    found = context.database["tricks"].find(query, _TRICK, session=context.session)
    return await found.limit(MOST_TRICKS).to_list()


def _joined(
    array: Mapping[ObjectId, Fields], known: Mapping[ObjectId, Row], claimed: Sequence[Row]
) -> list[ListedTrick]:
    found = {id_: Fields(known[id_]) if id_ in known else embedded for id_, embedded in array.items()}
    for row in sorted(claimed, key=lambda row: str(row["_id"])):
        found.setdefault(row["_id"], Fields(row))
    return [
        ListedTrick(id_, name[:LONGEST_NAME], _progress(fields), id_ in array, fields.date("updatedAt", "createdAt"))
        for id_, fields in found.items()
        if (name := fields.line("name"))
    ]


def _progress(fields: Fields) -> Progress:
    """From `checked`, or the oldest app's `status`."""
    checked = fields.raw("checked")
    return progress(fields.raw("status") if checked is None else checked)


def _age(row: Row) -> tuple[datetime, str]:
    return Fields(row).date("createdAt") or _EPOCH, str(row["_id"])
