"""Writes to a rider's lists: whose a row is, and both halves of a membership.

Every operation goes through the context's session: the registry holds a transaction around a write (`brain.once`). What
an older program wrote by half is completed here, or taken back.
"""

from collections.abc import Iterable
from typing import Final

from bson import ObjectId

from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.ids import both_forms, object_id, owns
from brain.knowledge.domain.statuses import TO_DO
from brain.tool import ToolContext
from brain.trickbook.lists import entries_of, own_lists

CREATED_BY: Final = "kaori"
"""The only value that the collections' schemas know, whichever companion writes."""

_YOURS: Final = "take an id from get_user_tricklists"


async def own_list(context: ToolContext, list_id: ObjectId) -> Row:
    """The list, when it is the rider's; raises ToolFailure."""
    row = await context.database["tricklists"].find_one({"_id": list_id}, session=context.session)
    if row is None:
        raise ToolFailure(code="not_found", message=f"there is no list with this id: {_YOURS}")
    if not owns(context.rider, row):
        raise ToolFailure(code="forbidden", message=f"this list is not the rider's: {_YOURS}")
    return row


async def insert_trick(context: ToolContext, trick_id: ObjectId, name: str, list_id: ObjectId) -> None:
    """A new trick's own row, as the backend writes it: `list_id` is text."""
    row: Row = {
        "_id": trick_id,
        "name": name,
        "list_id": str(list_id),
        "checked": TO_DO,
        "link": "",
        "notes": "",
        "createdBy": CREATED_BY,
        "createdAt": context.now(),
    }
    await context.database["tricks"].insert_one(row, session=context.session)


async def into_array(context: ToolContext, row: Row, trick_id: ObjectId) -> None:
    """The other half of membership; a list whose `tricks` is no array gets one."""
    entry = {"_id": trick_id}
    change = {"$push": {"tricks": entry}} if isinstance(row.get("tricks"), list) else {"$set": {"tricks": [entry]}}
    await context.database["tricklists"].update_one({"_id": row["_id"]}, change, session=context.session)


async def forget_nameless(context: ToolContext, row: Row, shown: Iterable[ObjectId]) -> None:
    """Take entries out of the array that have neither a row anywhere nor a name; `shown` are those that are tricks."""
    named = set(shown)
    nameless = [id_ for id_, embedded in entries_of(row).items() if id_ not in named and not embedded.line("name")]
    if not nameless:
        return
    found = context.database["tricks"].find({"_id": {"$in": nameless}}, {"_id": 1}, session=context.session)
    gone = set(nameless) - {other["_id"] for other in await found.to_list()}
    if gone:
        change = {"$pull": {"tricks": {"_id": {"$in": list(gone)}}}}
        await context.database["tricklists"].update_one({"_id": row["_id"]}, change, session=context.session)


async def check_own_trick(context: ToolContext, row: Row) -> None:
    """Raise ToolFailure unless the trick is on a list of the rider's."""
    list_id = object_id(row.get("list_id"))
    found = None
    if list_id is not None:
        found = await context.database["tricklists"].find_one({"_id": list_id}, session=context.session)
    if found is None or not owns(context.rider, found):
        raise ToolFailure(code="forbidden", message=f"this trick is on no list of the rider's: {_YOURS}")


async def mark_embedded(context: ToolContext, trick_id: ObjectId, status: str) -> str:
    """Mark a trick that only exists inside one of the rider's lists; its name. Raises ToolFailure (`not_found`)."""
    for row in await own_lists(context):
        name = entries[trick_id].line("name") if trick_id in (entries := entries_of(row)) else ""
        if name:
            where = {"_id": row["_id"], "tricks._id": {"$in": both_forms(str(trick_id))}}
            change = {"$set": {"tricks.$.checked": status}}
            done = await context.database["tricklists"].update_one(where, change, session=context.session)
            if done.matched_count:
                return name
    raise ToolFailure(code="not_found", message=f"there is no trick with this id: {_YOURS}")
