"""The indexes that the tools' queries need, in one place; `tests/integration/test_tool_plans.py` explains each query.

The backend has made some of them already: those on `spots` by place, of the one bucket of saved spots, of profiles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import OperationFailure, PyMongoError

from brain.knowledge.connect import Row
from brain.knowledge.errors import Fatal
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.once import INDEX as JOURNAL_INDEX
from brain.once import JOURNAL
from brain.trickbook.collation import LOOSE

_NEWEST_FILMS: Final = (("releaseYear", DESCENDING), ("title", ASCENDING), ("_id", ASCENDING))

INDEXES: Final[Mapping[str, Sequence[IndexModel]]] = {
    "spots": (
        IndexModel([("approvalStatus", ASCENDING), ("latitude", ASCENDING), ("longitude", ASCENDING)]),
        IndexModel([("approvalStatus", ASCENDING), ("state", ASCENDING)], name="state_loose", collation=LOOSE),
        IndexModel([("approvalStatus", ASCENDING), ("rating", DESCENDING), ("_id", ASCENDING)]),
        IndexModel("name", name="name_loose", collation=LOOSE),
        IndexModel("userId"),
    ),
    "spotlists": (
        IndexModel("userId", name="tools_userId"),
        IndexModel("userId", name="tools_saved", unique=True, partialFilterExpression={"isDefaultSaved": True}),
    ),
    "spot_reviews": (IndexModel([("status", ASCENDING), ("spotId", ASCENDING)]),),
    "spot_trick_history": (IndexModel("spotId"),),
    "couch_videos": (IndexModel([("isPublished", ASCENDING), ("type", ASCENDING), *_NEWEST_FILMS]),),
    "media_library": (IndexModel([("status", ASCENDING), *_NEWEST_FILMS]),),
    "feed_posts": (
        IndexModel([("userId", ASCENDING), ("createdAt", DESCENDING), ("_id", DESCENDING)]),
        IndexModel([("status", ASCENDING), ("visibility", ASCENDING), ("createdAt", DESCENDING), ("_id", DESCENDING)]),
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
    JOURNAL: (JOURNAL_INDEX,),
}
"""By collection. One that serves an order holds all of it, `_id` too: with less MongoDB sorts all that match."""

NOT_EMBEDDED: Final[Mapping[str, Sequence[IndexModel]]] = {"tricklists": (IndexModel("user"),)}
"""Those that the embedded server cannot build: it knows no order among DBRefs."""

_REFUSALS: Final[Mapping[int, str]] = {
    1: "the server fails at it (the embedded one does for references); its queries scan",
    11000: "two rows have the same keys; remove one, then run this again",
    67: "this server cannot make such an index",
    85: "there is an index on these keys with other options; drop it, then run this again",
    86: "there is another index of this name; drop it, then run this again",
}
"""By code: InternalError, DuplicateKey, CannotCreateIndex, IndexOptionsConflict, IndexKeySpecsConflict."""


State = Literal["there", "missing", "made", "refused"]


@dataclass(frozen=True, slots=True)
class IndexReport:
    """One declared index and whether it is there; `reason` says why the server refused to make it."""

    collection: str
    keys: tuple[str, ...]
    state: State
    reason: str | None = None


async def index_report(
    database: AsyncDatabase[Row], *, embedded: bool = False, make: bool = False
) -> list[IndexReport]:
    """Which indexes are there, and with `make` those that are missing made, one after the other.

    An index that serves the same counts, whatever its name. One that cannot be made (the data breaks its uniqueness, or
    another of that name is there) is reported and stops none of the others. Raises KnowledgeError when the database
    does not answer or refuses the user.
    """
    found: list[IndexReport] = []
    for declared in (INDEXES,) if embedded else (INDEXES, NOT_EMBEDDED):
        for name, indexes in declared.items():
            try:
                served = [_served(index) async for index in await database[name].list_indexes()]
                for index in indexes:
                    there = _served(index.document) in served
                    report = IndexReport(name, _keys(index), "there" if there else "missing")
                    found.append(await _made(database, index, report) if make and not there else report)
            except PyMongoError as exc:
                raise as_knowledge_error(exc, f"looking at the indexes of {name}") from exc
    return found


async def ensure_indexes(database: AsyncDatabase[Row], *, embedded: bool = False) -> None:
    """Make every index that is missing. Raises what `index_report` raises, and Fatal when one is refused."""
    refused = [index for index in await index_report(database, embedded=embedded, make=True) if index.reason]
    if refused:
        message = "; ".join(f"{index.collection} {', '.join(index.keys)}: {index.reason}" for index in refused)
        raise Fatal(message)


async def _made(database: AsyncDatabase[Row], index: IndexModel, report: IndexReport) -> IndexReport:
    try:
        await database[report.collection].create_indexes([index])
    except OperationFailure as exc:
        reason = _REFUSALS.get(exc.code or 0)
        if reason is None:
            raise
        return replace(report, state="refused", reason=reason)
    return replace(report, state="made")


def _keys(index: IndexModel) -> tuple[str, ...]:
    """The keys in order: a minus before a descending one, and what else it is good for."""
    document: Mapping[str, Any] = index.document
    keys = [f"{'-' if order == DESCENDING else ''}{key}" for key, order in document["key"].items()]
    return (*keys, *(word for word in ("unique", "collation") if document.get(word)))


def _served(index: Mapping[str, Any]) -> tuple[object, ...]:
    """What an index is good for: its keys in order, uniqueness, the rows it holds, how it compares text."""
    collation: Mapping[str, Any] = index.get("collation") or {}
    return (
        list(index["key"].items()),
        bool(index.get("unique")),
        index.get("partialFilterExpression"),
        (collation.get("locale"), collation.get("strength")),
    )
