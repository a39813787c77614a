"""The feed as one rider may see it: sessions to coach on. Reading only; nothing is posted and no view is counted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, cast

from bson import ObjectId
from pydantic import Field

from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import cut
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import both_forms, object_id, same_id
from brain.knowledge.domain.numbers import count
from brain.knowledge.sports import ignored_sport, known_sport, spellings
from brain.tool import AnyTool, Arguments, Result, Tool, ToolContext, Words, remarks
from brain.trickbook.lists import own_lists, tricks_on
from brain.trickbook.spots import SPOT_FIELDS, sees_spot

MOST_POSTS: Final = 10
LONGEST_CAPTION: Final = 280  # characters
_MOST_AUTHORS: Final = 1_000
_WINDOWS: Final = (1, 10, 100)  # days
_Condition = Mapping[str, Any]
_PUBLIC: Final[_Condition] = {"status": "published", "visibility": "public"}
_HOMIES: Final[_Condition] = {"status": "published", "visibility": "homies"}
_FIELDS: Final = dict.fromkeys(
    [
        *("userId", "mediaType", "caption", "sportTypes", "spotId", "trickIds", "visibility", "status", "createdAt"),
        *("stats.likes", "stats.comments", "stats.views"),
    ],
    1,
)
"""What is read of a post: never where its video is hosted."""

Whose = Literal["mine", "homies", "everyone"]


class ReadFeed(Arguments):
    """Whose posts."""

    whose: Whose | None = Field(default=None, description="mine when left out")
    sport: Words | None = Field(default=None, description="such as skateboarding")
    limit: int | None = Field(default=None, ge=1, le=MOST_POSTS, description="5 when left out, at most 10")


class Post(Result):
    """A post; the caption is its author's words."""

    id: str
    mine: bool
    author: str | None = None
    media_type: str | None = None
    caption: str | None = None
    sport_types: list[str]
    tricks: list[str]
    spot_id: str | None = None
    spot_name: str | None = None
    visibility: str | None = None
    posted_at: datetime | None = None
    likes: int | None = None
    comments: int | None = None
    views: int | None = None


class Posts(Result):
    """The newest first."""

    results: list[Post]
    total: int
    message: str | None = None


async def read_feed(context: ToolContext, arguments: ReadFeed) -> Posts:
    """The rider's own posts, public ones, and those for homies of authors who have the rider among theirs."""
    whose, limit = arguments.whose or "mine", arguments.limit or 5
    sport = known_sport(arguments.sport)
    rows: dict[str, Row] = {}
    for first, rest in await _conditions(context, whose):
        wanted = {**rest, "sportTypes": {"$in": spellings(sport)}} if sport else rest
        found = await _newest_posts(context, first, wanted, limit)
        rows |= {str(row["_id"]): row for row in found if _is_shown(row, context.rider)}
    newest = sorted(rows.values(), key=_newest, reverse=True)[:limit]
    results = await _told(context, newest)
    message = remarks(ignored_sport(arguments.sport), None if results else "no such posts to see")
    return Posts(results=results, total=len(results), message=message)


async def _conditions(context: ToolContext, whose: Whose) -> list[tuple[_Condition, _Condition]]:
    """What the rider may see, a query each: first what an index serves, then the rest of it."""
    mine: _Condition = {"userId": {"$in": both_forms(context.rider)}}
    if whose == "mine":
        return [(mine, {})]
    close = await _authors(context, {"homies": {"$in": both_forms(context.rider)}})
    if whose == "everyone":
        return [(mine, {}), (_PUBLIC, {}), ({"userId": {"$in": close}}, _HOMIES)]
    friends = await _homies(context)
    both = [id_ for id_ in friends if id_ in close]
    return [({"userId": {"$in": friends}}, _PUBLIC), ({"userId": {"$in": both}}, _HOMIES)]


async def _authors(context: ToolContext, condition: Mapping[str, Any]) -> list[ObjectId | str]:
    """The ids of these users in both forms."""
    found = context.database["users"].find(condition, {"_id": 1}, session=context.session)
    return [form for row in await found.limit(_MOST_AUTHORS).to_list() for form in both_forms(str(row["_id"]))]


async def _homies(context: ToolContext) -> list[ObjectId | str]:
    """The rider's own homies in both forms."""
    user = await context.database["users"].find_one(
        {"_id": ObjectId(context.rider)}, {"homies": 1}, session=context.session
    )
    stored = (user or {}).get("homies")
    homies = cast("Sequence[object]", stored)[:_MOST_AUTHORS] if isinstance(stored, list) else ()
    return [form for one in homies if (id_ := object_id(one)) is not None for form in both_forms(str(id_))]


async def _newest_posts(context: ToolContext, first: _Condition, rest: _Condition, limit: int) -> list[Row]:
    """The newest posts; public ones of the last days when these suffice: the embedded server sorts all it finds."""
    for days in _WINDOWS if first is _PUBLIC else ():
        found = await _posts(
            context, {**first, "createdAt": {"$gte": context.now() - timedelta(days=days)}}, rest, limit
        )
        if len(found) == limit:
            return found
    return await _posts(context, first, rest, limit)


async def _posts(context: ToolContext, first: _Condition, rest: _Condition, limit: int) -> list[Row]:
    """The newest posts that meet both conditions. The feed says "surf" where the rest of the data says "surfing"."""
    pipeline: list[Mapping[str, Any]] = [
        {"$match": first},
        {"$match": rest},
        {"$sort": {"createdAt": -1, "_id": -1}},
        {"$limit": limit},
        {"$project": _FIELDS},
    ]
    cursor = await context.database["feed_posts"].aggregate(pipeline, session=context.session)
    return await cursor.to_list()


def _is_shown(row: Row, rider: str) -> bool:
    """What the queries say, said exactly: to a database an array that holds "public" is public too.

    The same goes for authors: a post for homies needs one that can be read, and it is the one that the query was for.
    """
    seen, readable = row.get("visibility"), object_id(row.get("userId")) is not None
    exact = row.get("status") == "published" and (seen == "public" or (seen == "homies" and readable))
    return exact or same_id(row.get("userId"), rider)


def _newest(row: Row) -> tuple[float, str]:
    posted = Fields(row).date("createdAt")
    return (posted.timestamp() if posted else 0.0, str(row["_id"]))


async def _told(context: ToolContext, rows: Sequence[Row]) -> list[Post]:
    names = await _names(context, {id_ for row in rows if (id_ := object_id(row.get("userId"))) is not None})
    spots = await _spots(context, {id_ for row in rows if (id_ := object_id(row.get("spotId"))) is not None})
    linked = any(row.get("trickIds") and same_id(row.get("userId"), context.rider) for row in rows)
    own = await _own_tricks(context) if linked else {}
    return [_post(row, context, _Named(names, spots, own)) for row in rows]


@dataclass(frozen=True, slots=True)
class _Named:
    """What posts refer to by id and the rider may see: authors, spots, the rider's own tricks."""

    authors: Mapping[ObjectId, str]
    spots: Mapping[ObjectId, str]
    tricks: Mapping[ObjectId, str]


async def _own_tricks(context: ToolContext) -> dict[ObjectId, str]:
    """The names of the rider's own tricks; those of others are on their lists, and no part of the feed."""
    lists = await tricks_on(context, await own_lists(context))
    return {trick.id: trick.name for tricks in lists.values() for trick in tricks}


async def _names(context: ToolContext, ids: set[ObjectId]) -> dict[ObjectId, str]:
    """The authors' names as the app shows them; nothing else of a user is read."""
    found = context.database["users"].find({"_id": {"$in": sorted(ids)}}, {"name": 1}, session=context.session)
    return {row["_id"]: name for row in await found.to_list() if (name := _name(row))}


def _name(row: Row) -> str | None:
    """A name is text, or on some accounts an object of given and family name."""
    parts = Fields(row).child("name")
    full = " ".join(filter(None, (parts.line("givenName"), parts.line("familyName"))))
    return Fields(row).label("name") or full[:100] or None


async def _spots(context: ToolContext, ids: set[ObjectId]) -> dict[ObjectId, str]:
    """The names of those spots that the rider may see."""
    found = context.database["spots"].find({"_id": {"$in": sorted(ids)}}, SPOT_FIELDS, session=context.session)
    return {row["_id"]: Fields(row).line("name")[:150] for row in await found.to_list() if sees_spot(context, row)}


def _post(row: Row, context: ToolContext, named: _Named) -> Post:
    fields = Fields(row)
    author, spot, stats = object_id(row.get("userId")), object_id(row.get("spotId")), fields.child("stats")
    seen = spot if spot is not None and spot in named.spots else None
    linked = [object_id(id_) for id_ in fields.lines("trickIds")]
    return Post(
        id=str(row["_id"]),
        mine=same_id(row.get("userId"), context.rider),
        author=named.authors.get(author) if author is not None else None,
        media_type=fields.label("mediaType"),
        caption=cut(fields.line("caption"), LONGEST_CAPTION),
        sport_types=fields.sports("sportTypes")[:10],
        tricks=[named.tricks[id_] for id_ in linked if id_ is not None and id_ in named.tricks][:10],
        spot_id=str(seen) if seen is not None else None,
        spot_name=named.spots[seen] if seen is not None else None,
        visibility=fields.label("visibility"),
        posted_at=fields.date("createdAt"),
        likes=count(stats.raw("likes")),
        comments=count(stats.raw("comments")),
        views=count(stats.raw("views")),
    )


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="read_feed",
        description="Posts of the rider, of their homies, or of everyone they may see, the newest first.",
        arguments=ReadFeed,
        result=Posts,
        handler=read_feed,
        scope="user",
    ),
)
