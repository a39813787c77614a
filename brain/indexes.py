"""The indexes that the tools' queries need, in one place; `tests/integration/test_tool_plans.py` explains each query.

The backend has made some of them already: those on `spots` by place, of the one bucket of saved spots, of profiles.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.trick_search import LOOSE

INDEXES: Final[Mapping[str, Sequence[IndexModel]]] = {
    "spots": (
        IndexModel([("approvalStatus", ASCENDING), ("latitude", ASCENDING), ("longitude", ASCENDING)]),
        IndexModel([("approvalStatus", ASCENDING), ("state", ASCENDING)], name="state_loose", collation=LOOSE),
        IndexModel([("approvalStatus", ASCENDING), ("rating", DESCENDING)]),
        IndexModel("userId"),
    ),
    "spotlists": (
        IndexModel("userId", name="tools_userId"),
        IndexModel("userId", name="tools_saved", unique=True, partialFilterExpression={"isDefaultSaved": True}),
    ),
    "spot_reviews": (IndexModel([("status", ASCENDING), ("spotId", ASCENDING)]),),
    "spot_trick_history": (IndexModel("spotId"),),
    "couch_videos": (
        IndexModel(
            [("isPublished", ASCENDING), ("type", ASCENDING), ("releaseYear", DESCENDING), ("title", ASCENDING)]
        ),
    ),
    "media_library": (IndexModel([("status", ASCENDING), ("releaseYear", DESCENDING), ("title", ASCENDING)]),),
    "feed_posts": (
        IndexModel([("userId", ASCENDING), ("createdAt", DESCENDING)]),
        IndexModel([("status", ASCENDING), ("visibility", ASCENDING), ("createdAt", DESCENDING)]),
    ),
    "users": (IndexModel("homies"),),
    "events": (IndexModel([("endAt", ASCENDING), ("startAt", ASCENDING)]),),
    "trickipedia": (
        IndexModel("name", name="name_loose", collation=LOOSE),
        IndexModel("aliases", name="aliases_loose", collation=LOOSE),
        IndexModel([("category", ASCENDING), ("name", ASCENDING)], name="category_loose", collation=LOOSE),
        IndexModel("url"),
    ),
    "tricklists": (IndexModel("user.$id"), IndexModel("userId")),
    "tricks": (IndexModel("list_id"),),
    "companion_profiles": (IndexModel([("userId", ASCENDING), ("companionId", ASCENDING)], unique=True),),
}
"""By collection."""

NOT_EMBEDDED: Final[Mapping[str, Sequence[IndexModel]]] = {"tricklists": (IndexModel("user"),)}
"""Those that the embedded server cannot build: it knows no order among DBRefs."""


async def ensure_indexes(database: AsyncDatabase[Row], *, embedded: bool = False) -> None:
    """Create what is missing; an index that serves the same is left as it is, whatever its name.

    Raises the driver's errors.
    """
    for declared in (INDEXES,) if embedded else (INDEXES, NOT_EMBEDDED):
        for collection, indexes in declared.items():
            there = [_served(index) async for index in await database[collection].list_indexes()]
            missing = [index for index in indexes if _served(index.document) not in there]
            if missing:
                await database[collection].create_indexes(missing)


def _served(index: Mapping[str, Any]) -> tuple[object, ...]:
    """What an index is good for: its keys in order, uniqueness, the rows it holds, how it compares text."""
    collation: Mapping[str, Any] = index.get("collation") or {}
    return (
        list(index["key"].items()),
        bool(index.get("unique")),
        index.get("partialFilterExpression"),
        (collation.get("locale"), collation.get("strength")),
    )
