"""The indexes that the tools' queries need, in one place; `tests/integration/test_tool_plans.py` explains each query.

Creating one that is there already changes nothing. `spots` has its first one from the backend.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.trick_search import LOOSE

INDEXES: Final[Mapping[str, Sequence[IndexModel]]] = {
    "spots": (
        IndexModel([("approvalStatus", ASCENDING), ("latitude", ASCENDING), ("longitude", ASCENDING)]),
        IndexModel([("approvalStatus", ASCENDING), ("state", ASCENDING)], name="state_loose", collation=LOOSE),
        IndexModel("userId"),
    ),
    "spotlists": (IndexModel("userId"),),
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
    """Create what is missing. Raises the driver's errors."""
    for declared in (INDEXES,) if embedded else (INDEXES, NOT_EMBEDDED):
        for collection, indexes in declared.items():
            await database[collection].create_indexes(list(indexes))
