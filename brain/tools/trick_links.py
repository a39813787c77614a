"""Where a trick of the rider's was landed, and on which video: the link between a trick, a spot and a clip."""

import ipaddress
from typing import Annotated, Final
from urllib.parse import urlsplit

from bson import ObjectId
from pydantic import AfterValidator, Field, StringConstraints

from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.fields import Fields
from brain.tool import AnyTool, Arguments, Id, Result, Tool, ToolContext
from brain.trickbook.list_writes import check_own_trick
from brain.trickbook.spots import visible_spot

LONGEST_ADDRESS: Final = 500  # characters
_TRICK_FIELDS: Final = {"name": 1, "list_id": 1, "spotId": 1, "videoUrl": 1}


def _public_address(text: str) -> str:
    """An https address of a public host, or ValueError: it will be opened on riders' phones."""
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").rstrip("."), parts.port  # a dot at the end names the same host
    except ValueError:
        host, port, parts = "", None, None
    plain = text.isascii() and text.isprintable() and not set(text) & set(' "<>\\^`{|}')
    local = host.endswith((".local", ".internal", ".localhost")) or _is_number(host)
    named = "." in host and "%" not in host and not local  # a browser reads %61 in a host as a letter
    if not (plain and named and parts and parts.scheme == "https" and port in (None, 443) and "@" not in parts.netloc):
        message = "a video address is https:// and a public host name, without a user, a port or blanks"
        raise ValueError(message)
    return text


def _is_number(host: str) -> bool:
    """Whether the host is an address of numbers, in whatever notation."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.rsplit(".", 1)[-1][:1].isdigit()
    return True


Address = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True, max_length=LONGEST_ADDRESS),
    AfterValidator(_public_address),
]


class LinkTrickToSpot(Arguments):
    """Which of the rider's tricks, and where."""

    trick_id: Id = Field(description="id of the rider's own trick, from get_user_tricklists or my_progress")
    spot_id: Id = Field(description="id of the spot, from another tool's result")


class LinkTrickToVideo(Arguments):
    """Which of the rider's tricks, and its video."""

    trick_id: Id = Field(description="id of the rider's own trick, from get_user_tricklists or my_progress")
    video_url: Address = Field(description="https address of the clip, as the rider gave it")


class Linked(Result):
    """What the trick is linked to now; `changed` is false when it was so before."""

    success: bool = True
    trick_id: str
    trick_name: str
    spot_id: str | None = None
    spot_name: str | None = None
    video_url: str | None = None
    changed: bool
    message: str


async def link_trick_to_spot(context: ToolContext, arguments: LinkTrickToSpot) -> Linked:
    """Say where a trick was done. Raises ToolFailure (`not_found`, `forbidden`)."""
    trick = await _own_trick(context, arguments.trick_id)
    spot = await visible_spot(context, arguments.spot_id)
    changed = await _set(context, trick, "spotId", str(spot["_id"]))
    name, place = _name(trick), Fields(spot).line("name")[:150] or "the spot"
    return Linked(
        trick_id=str(trick["_id"]),
        trick_name=name,
        spot_id=str(spot["_id"]),
        spot_name=place,
        changed=changed,
        message=f"{name} is linked to {place}" if changed else f"{name} was already linked to {place}",
    )


async def link_trick_to_video(context: ToolContext, arguments: LinkTrickToVideo) -> Linked:
    """Attach a clip to a trick. Raises ToolFailure (`not_found`, `forbidden`)."""
    trick = await _own_trick(context, arguments.trick_id)
    changed = await _set(context, trick, "videoUrl", arguments.video_url)
    name = _name(trick)
    return Linked(
        trick_id=str(trick["_id"]),
        trick_name=name,
        video_url=arguments.video_url,
        changed=changed,
        message=f"the video is linked to {name}" if changed else f"the video was already linked to {name}",
    )


async def _own_trick(context: ToolContext, trick_id: str) -> Row:
    """The trick, when it is on a list of the rider's; raises ToolFailure."""
    row = await context.database["tricks"].find_one({"_id": ObjectId(trick_id)}, _TRICK_FIELDS, session=context.session)
    if row is None:
        message = "no trick with this id can be linked: take one from my_progress (the oldest ones have no row to link)"
        raise ToolFailure(code="not_found", message=message)
    await check_own_trick(context, row)
    return row


async def _set(context: ToolContext, trick: Row, field: str, value: str) -> bool:
    """Write one field, and whether that changed anything; the same value again writes nothing."""
    if trick.get(field) == value:
        return False
    done = await context.database["tricks"].update_one(
        {"_id": trick["_id"], "list_id": trick["list_id"]},
        {"$set": {field: value, "updatedAt": context.now()}},
        session=context.session,
    )
    if not done.matched_count:
        raise ToolFailure(code="conflict", message="the trick was changed just now: try again", retryable=True)
    return True


def _name(trick: Row) -> str:
    return Fields(trick).line("name")[:150] or "the trick"


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="link_trick_to_spot",
        description="Link one of the rider's own tricks to the spot where they did it.",
        arguments=LinkTrickToSpot,
        result=Linked,
        handler=link_trick_to_spot,
        scope="user",
        effect="write",
        destructive=True,
    ),
    Tool(
        name="link_trick_to_video",
        description="Attach the address of a clip to one of the rider's own tricks.",
        arguments=LinkTrickToVideo,
        result=Linked,
        handler=link_trick_to_video,
        scope="user",
        effect="write",
        destructive=True,
    ),
)
