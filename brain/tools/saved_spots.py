"""Saving a spot to one of the rider's spot lists, within what their plan allows."""

from collections.abc import Sequence
from typing import Any, Final

from bson import ObjectId
from pydantic import Field
from pymongo.errors import DuplicateKeyError

from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import one_line
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import both_forms
from brain.knowledge.domain.names import name_key
from brain.knowledge.domain.plan import SpotList, is_premium, limit_reached, spot_list_of
from brain.once import one_at_a_time
from brain.tool import AnyTool, Arguments, Id, Result, Tool, ToolContext, Words
from brain.trickbook.spots import visible_spot

SAVED_NAME: Final = "Saved Spots"
"""The name that the app's one-tap save gives to the hidden bucket."""
_MOST_LISTS: Final = 1_000  # of one rider; who is free has three


class SaveSpot(Arguments):
    """Which spot, and where to."""

    spot_id: Id = Field(description="id of the spot, from another tool's result")
    list_name: Words | None = Field(
        default=None, description="one of the rider's spot lists, or a new one; left out: Saved Spots"
    )


class SpotSaved(Result):
    """Where the spot is now."""

    success: bool = True
    spot_id: str
    spot_name: str
    list_id: str
    list_name: str
    already_saved: bool
    message: str


async def save_spot(context: ToolContext, arguments: SaveSpot) -> SpotSaved:
    """Add the spot to the list, which is made when there is none; saving it twice is saving it once.

    Raises ToolFailure: `invalid_arguments`, `not_found` (also a spot that the rider may not see), `limit_reached`,
    `conflict`.
    """
    await one_at_a_time(context, f"spot lists of {context.rider}")
    spot = await visible_spot(context, arguments.spot_id)
    rows = await _lists(context)
    name = SAVED_NAME if arguments.list_name is None else one_line(arguments.list_name)
    if not name:
        raise ToolFailure(code="invalid_arguments", message="list_name must not be blank. Nothing was done.")
    row = _named(rows, name)
    already = row is not None and spot["_id"] in spot_list_of(row).spots
    if not already:
        await _check_plan(context, rows, row, name)
        if row is None:
            row = await _made(context, name, spot["_id"])
        else:
            await _added(context, row, spot["_id"])
    spot_name, list_name = Fields(spot).line("name") or "the spot", Fields(row or {}).line("name") or name
    return SpotSaved(
        spot_id=str(spot["_id"]),
        spot_name=spot_name,
        list_id=str((row or {}).get("_id")),
        list_name=list_name,
        already_saved=already,
        message=f"{spot_name} was already in {list_name}" if already else f"{spot_name} is saved in {list_name}",
    )


async def _lists(context: ToolContext) -> list[Row]:
    """The rider's lists, oldest first."""
    found = context.database["spotlists"].find(
        {"userId": {"$in": both_forms(context.rider)}},
        {"name": 1, "spotIds": 1, "isDefaultSaved": 1},
        session=context.session,
    )
    return sorted(await found.limit(_MOST_LISTS).to_list(), key=lambda row: str(row["_id"]))


def _named(rows: Sequence[Row], name: str) -> Row | None:
    """The list of this name in any spelling; by its own name the bucket."""
    if name_key(name) == name_key(SAVED_NAME):
        return next((row for row in rows if spot_list_of(row).saved), None)
    lists = ((row, spot_list_of(row)) for row in rows)
    return next((row for row, one in lists if not one.saved and name_key(one.name) == name_key(name)), None)


async def _check_plan(context: ToolContext, rows: Sequence[Row], row: Row | None, name: str) -> None:
    """Refuse what the free plan does not allow."""
    user = await context.database["users"].find_one(
        {"_id": ObjectId(context.rider)},
        {"role": 1, "subscription.plan": 1, "subscription.status": 1, "subscription.adminOverride": 1},
        session=context.session,
    )
    if is_premium(user):
        return
    target = spot_list_of(row) if row is not None else None
    if target is None and name_key(name) == name_key(SAVED_NAME):
        target = SpotList(SAVED_NAME, frozenset(), saved=True)
    reached = limit_reached([spot_list_of(one) for one in rows], target)
    if reached is not None:
        raise ToolFailure(
            code="limit_reached",
            message=(
                f"the spot was not saved: the free plan allows {reached.limit} {reached.what}, and the rider has"
                f" {reached.current} (limit {reached.limit}, current {reached.current}, upgradeRequired true)"
            ),
        )


async def _made(context: ToolContext, name: str, spot: ObjectId) -> Row:
    """A new list that holds the spot."""
    now = context.now()
    saved = name_key(name) == name_key(SAVED_NAME)
    row: dict[str, Any] = {
        "name": SAVED_NAME if saved else name,
        "description": "",
        "userId": both_forms(context.rider)[0],
        "spotIds": [spot],
        "trickIds": [],
        "isDefaultSaved": saved,
        "createdAt": now,
        "updatedAt": now,
    }
    try:
        await context.database["spotlists"].insert_one(row, session=context.session)  # which adds `_id`
    except DuplicateKeyError as exc:
        raise ToolFailure(code="conflict", message="Saved Spots was made just now: try again", retryable=True) from exc
    return row


async def _added(context: ToolContext, row: Row, spot: ObjectId) -> None:
    """The spot in a list that is there; what is no array of spots becomes one."""
    change = {"$addToSet": {"spotIds": spot}, "$set": {"updatedAt": context.now()}}
    if not isinstance(row.get("spotIds", []), list):
        change = {"$set": {"spotIds": [spot], "updatedAt": context.now()}}
    done = await context.database["spotlists"].update_one(
        {"_id": row["_id"], "userId": {"$in": both_forms(context.rider)}}, change, session=context.session
    )
    if not done.matched_count:
        raise ToolFailure(code="conflict", message="the list was deleted just now: try again", retryable=True)


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="save_spot",
        description="Save a spot to the rider's Saved Spots, or to a spot list by name.",
        arguments=SaveSpot,
        result=SpotSaved,
        handler=save_spot,
        scope="user",
        effect="write",
    ),
)
