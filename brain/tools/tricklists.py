"""A rider's trick lists: read them, make one, add a trick, say how far a trick is.

A write happens in one transaction, once a turn (`brain.once`).
"""

from typing import Final, Literal

from bson import DBRef, ObjectId
from pydantic import Field

from brain.cards import made, tricklist_card
from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import one_line
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.names import name_key
from brain.knowledge.domain.statuses import Progress, Written
from brain.once import one_at_a_time
from brain.tool import AnyTool, Arguments, Card, Id, Result, Tool, ToolContext, Words
from brain.trickbook.list_writes import (
    CREATED_BY,
    check_own_trick,
    forget_nameless,
    insert_trick,
    into_array,
    mark_embedded,
    own_list,
)
from brain.trickbook.lists import LONGEST_NAME, ListedTrick, landed, list_name, own_lists, tricks_on

MOST_RECENT: Final = 3
MOST_SHOWN: Final = 5
GUIDE: Final = "Name the lists and how many tricks of each are landed; offer to add a trick or to mark one."
Status = Literal["Complete", "Learning", "To Do"]
_SAID: Final[dict[Progress, Status]] = {"landed": "Complete", "learning": "Learning", "not_started": "To Do"}


class NoArguments(Arguments):
    """None."""


class TrickOnList(Result):
    """A trick and how far the rider is with it."""

    id: str
    name: str
    status: Status


class ListTold(Result):
    """A list; `completed` counts the landed tricks."""

    id: str
    name: str
    total_tricks: int
    completed: int
    tricks: list[TrickOnList]


class ListsTold(Result):
    """The rider's most recent lists, the newest last; `lists` is empty when there are none."""

    total_list_count: int
    recent_lists: list[ListTold] | None = None
    response_guide: str | None = None
    lists: list[ListTold] | None = None
    message: str | None = None


async def get_user_tricklists(context: ToolContext, _arguments: NoArguments) -> ListsTold:
    """The rider's lists, of every age."""
    rows = await own_lists(context)
    if not rows:
        return ListsTold(total_list_count=0, lists=[], message="The rider has no lists yet. Offer to make one.")
    recent = rows[-MOST_RECENT:]
    tricks = await tricks_on(context, recent)
    return ListsTold(
        total_list_count=len(rows),
        recent_lists=[_told(row, tricks[row["_id"]]) for row in recent],
        response_guide=GUIDE,
    )


def _told(row: Row, tricks: list[ListedTrick]) -> ListTold:
    return ListTold(
        id=str(row["_id"]),
        name=list_name(row),
        total_tricks=len(tricks),
        completed=landed(tricks),
        tricks=[
            TrickOnList(id=str(trick.id), name=trick.name, status=_SAID[trick.progress])
            for trick in tricks[:MOST_SHOWN]
        ],
    )


def _cards(result: ListsTold) -> list[Card]:
    lists = result.recent_lists or []
    return made(tricklist_card(one.id, one.name, trick_count=one.total_tricks, landed=one.completed) for one in lists)


class CreateTricklist(Arguments):
    """What it is called."""

    title: Words = Field(description="what the list is called")


class ListCreated(Result):
    """The list."""

    success: Literal[True] = True
    list_id: str
    name: str
    message: str


async def create_tricklist(context: ToolContext, arguments: CreateTricklist) -> ListCreated:
    """Make a public list, unless the rider has one of that name."""
    name = _text(arguments.title, "title")
    await one_at_a_time(context, f"trick lists of {context.rider}")
    existing = next((row for row in await own_lists(context) if name_key(list_name(row)) == name_key(name)), None)
    if existing is not None:
        return ListCreated(
            list_id=str(existing["_id"]), name=list_name(existing), message="The rider has a list of that name already."
        )
    row: Row = {
        "_id": ObjectId(),
        "name": name,
        "user": DBRef("users", str(ObjectId(context.rider))),
        "completed": 0,
        "tricks": [],
        "isPublic": True,
        "createdBy": CREATED_BY,
        "createdAt": context.now(),
    }
    await context.database["tricklists"].insert_one(row, session=context.session)
    return ListCreated(list_id=str(row["_id"]), name=name, message=f"Made the list {name}.")


class AddTrickToList(Arguments):
    """Which trick, to which list."""

    trick_name: Words = Field(description="the trick's name, as the rider would write it")
    list_id: Id = Field(description="id of one of the rider's lists")


class TrickAdded(Result):
    """The trick on the list."""

    success: Literal[True] = True
    trick_id: str
    trick_name: str
    list_name: str
    message: str


async def add_trick_to_list(context: ToolContext, arguments: AddTrickToList) -> TrickAdded:
    """Put a trick on a list, once: a name that is there in any spelling stays as it is, a half-done write is completed.

    Raises ToolFailure (`invalid_arguments`, `not_found`, `forbidden`).
    """
    name = _text(arguments.trick_name, "trick_name")
    row = await own_list(context, ObjectId(arguments.list_id))
    tricks = (await tricks_on(context, [row]))[row["_id"]]
    await forget_nameless(context, row, (trick.id for trick in tricks))
    same = next((trick for trick in tricks if name_key(trick.name) == name_key(name)), None)
    if same is None:
        trick_id, message = ObjectId(), f"Added {name} to {list_name(row)}."
        await insert_trick(context, trick_id, name, row["_id"])
    else:
        trick_id, name, message = same.id, same.name, f"{same.name} is on {list_name(row)} already."
    if same is None or not same.in_array:
        await into_array(context, row, trick_id)
    return TrickAdded(trick_id=str(trick_id), trick_name=name, list_name=list_name(row), message=message)


class UpdateTrickStatus(Arguments):
    """Which trick, and how far it is."""

    trick_id: Id = Field(description="id of a trick on one of the rider's lists")
    status: Written = Field(description="Complete when it is landed")


class StatusUpdated(Result):
    """The trick as it is now."""

    success: Literal[True] = True
    trick_id: str
    trick_name: str
    new_status: str
    message: str


async def update_trick_status(context: ToolContext, arguments: UpdateTrickStatus) -> StatusUpdated:
    """Mark a trick of the rider's as landed or to do. Raises ToolFailure (`not_found`, `forbidden`).

    A trick is the rider's when the list that it names is. One that names no list, a malformed one or one that is gone
    is nobody's. The oldest tricks have no row: they are marked inside their list.
    """
    trick_id = ObjectId(arguments.trick_id)
    row = await context.database["tricks"].find_one({"_id": trick_id}, session=context.session)
    if row is None:
        name = await mark_embedded(context, trick_id, arguments.status)
    else:
        await check_own_trick(context, row)
        name = Fields(row).line("name")[:LONGEST_NAME] or "The trick"
        change = {"$set": {"checked": arguments.status, "updatedAt": context.now()}}
        await context.database["tricks"].update_one({"_id": trick_id}, change, session=context.session)
    return StatusUpdated(
        trick_id=str(trick_id),
        trick_name=name,
        new_status=arguments.status,
        message=f"{name} is marked as {arguments.status}.",
    )


def _text(given: str, argument: str) -> str:
    """The text on one line, without what no reader sees. Raises ToolFailure when nothing is left."""
    text = one_line(given)
    if not text:
        raise ToolFailure(code="invalid_arguments", message=f"{argument} must not be blank. Nothing was done.")
    return text


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="get_user_tricklists",
        description="The rider's own trick lists: how many, the latest three, their tricks and which are landed.",
        arguments=NoArguments,
        result=ListsTold,
        handler=get_user_tricklists,
        cards=_cards,
        scope="user",
    ),
    Tool(
        name="create_tricklist",
        description="Make a public trick list for the rider. Only when they ask for one.",
        arguments=CreateTricklist,
        result=ListCreated,
        handler=create_tricklist,
        scope="user",
        effect="write",
    ),
    Tool(
        name="add_trick_to_list",
        description="Add a trick to one of the rider's lists. Get list_id from get_user_tricklists.",
        arguments=AddTrickToList,
        result=TrickAdded,
        handler=add_trick_to_list,
        scope="user",
        effect="write",
    ),
    Tool(
        name="update_trick_status",
        description="Mark a trick on the rider's lists as landed (Complete) or not (To Do).",
        arguments=UpdateTrickStatus,
        result=StatusUpdated,
        handler=update_trick_status,
        scope="user",
        effect="write",
        destructive=True,
    ),
)
