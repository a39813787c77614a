"""A rider's own trick lists and the tricks on them, in every shape that the data holds.

Membership is stored twice and the two can disagree (domain fact sheet, 2.4). A trick is the rider's when its row names
one of their lists; an entry in the list's own array counts only where no row is there (the oldest lists hold copies).
An array that names another rider's trick shows nothing of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from bson import ObjectId

from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import both_forms, object_id, owns
from brain.knowledge.domain.statuses import Progress, progress
from brain.tool import ToolContext

LONGEST_NAME: Final = 150  # characters
_MOST_LISTS: Final = 500
_MOST_TRICKS: Final = 5_000
_LIST_FIELDS: Final[Mapping[str, Any]] = {"name": 1, "user": 1, "userId": 1, "tricks": 1, "createdAt": 1}
_TRICK_FIELDS: Final[Mapping[str, Any]] = dict.fromkeys(
    ["name", "list_id", "checked", "spotId", "videoUrl", "feedPostId", "createdAt", "updatedAt"], 1
)


@dataclass(frozen=True, slots=True)
class MyTrick:
    """A trick on one of the rider's lists; `changed` is when its row was last written (UTC)."""

    id: str
    name: str
    list_id: str
    progress: Progress
    changed: datetime | None


@dataclass(frozen=True, slots=True)
class MyList:
    """One of the rider's lists with its tricks, in the list's order where it has one."""

    id: str
    name: str
    tricks: tuple[MyTrick, ...]

    @property
    def landed(self) -> int:
        """How many of the tricks are landed."""
        return sum(trick.progress == "landed" for trick in self.tricks)


async def my_lists(context: ToolContext) -> list[MyList]:
    """All lists of the rider, the oldest first."""
    lists = await _lists(context)
    rows = await _rows(context, lists)
    return [_list(row, rows) for row in lists]


async def my_trick(context: ToolContext, trick_id: str) -> Row:
    """A trick of the rider's, as stored. Raises ToolFailure (`not_found`), also for one of somebody else's list."""
    row = await context.database["tricks"].find_one({"_id": ObjectId(trick_id)}, _TRICK_FIELDS, session=context.session)
    list_id = object_id(row.get("list_id")) if row is not None else None
    found = None
    if list_id is not None:
        found = await context.database["tricklists"].find_one({"_id": list_id}, _LIST_FIELDS, session=context.session)
    if row is None or found is None or not owns(context.rider, found):
        raise ToolFailure(
            code="not_found", message="the rider has no trick with this id: take one from get_user_tricklists"
        )
    return row


async def _lists(context: ToolContext) -> list[Row]:
    """By each field that may name the owner, because an index serves one field; then only what `owns` grants."""
    forms = {"$in": both_forms(context.rider)}
    found: dict[str, Row] = {}
    for field in ("user.$id", "userId"):
        rows = context.database["tricklists"].find({field: forms}, _LIST_FIELDS, session=context.session)
        found |= {str(row["_id"]): row for row in await rows.limit(_MOST_LISTS).to_list()}
    return [found[id_] for id_ in sorted(found) if owns(context.rider, found[id_])]


async def _rows(context: ToolContext, lists: Sequence[Row]) -> dict[ObjectId, Row]:
    """The rows of these lists by id; those that the arrays name too, to know that they are there."""
    tricks, session = context.database["tricks"], context.session
    forms = [form for row in lists for form in both_forms(str(row["_id"]))]
    rows = await tricks.find({"list_id": {"$in": forms}}, _TRICK_FIELDS, session=session).limit(_MOST_TRICKS).to_list()
    found: dict[ObjectId, Row] = {row["_id"]: row for row in rows}
    entries = {id_ for row in lists for entry in Fields(row).children("tricks") if (id_ := _id(entry)) is not None}
    others = sorted(entries - set(found))[:_MOST_TRICKS]
    if others:
        named = tricks.find({"_id": {"$in": others}}, _TRICK_FIELDS, session=session)
        found |= {row["_id"]: row for row in await named.to_list()}
    return found


def _list(row: Row, rows: Mapping[ObjectId, Row]) -> MyList:
    """A list with its tricks: in the array's order, then what names the list without being in the array."""
    list_id, fields = row["_id"], Fields(row)
    tricks: dict[ObjectId, MyTrick] = {}
    for entry in fields.children("tricks"):
        id_ = _id(entry)
        if id_ is None:
            continue
        stored = rows.get(id_)
        if stored is None and entry.line("name"):
            tricks[id_] = _trick(id_, entry, list_id)  # a copy inside the list, of the oldest writers
        elif stored is not None and object_id(stored.get("list_id")) == list_id:
            tricks[id_] = _trick(id_, Fields(stored), list_id)
    for id_, stored in rows.items():
        if id_ not in tricks and object_id(stored.get("list_id")) == list_id:
            tricks[id_] = _trick(id_, Fields(stored), list_id)
    return MyList(str(list_id), fields.line("name")[:LONGEST_NAME] or "A list", tuple(tricks.values()))


def _trick(id_: ObjectId, fields: Fields, list_id: ObjectId) -> MyTrick:
    checked = fields.raw("checked")
    return MyTrick(
        id=str(id_),
        name=fields.line("name")[:LONGEST_NAME] or "A trick",
        list_id=str(list_id),
        progress=progress(fields.raw("status") if checked is None else checked),
        changed=fields.date("updatedAt", "createdAt"),
    )


def _id(entry: Fields) -> ObjectId | None:
    return object_id(entry.raw("_id"))
