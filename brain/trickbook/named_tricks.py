"""The tricks of the catalogue that a name means; one name may mean a trick in several sports."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from bson import ObjectId

from brain.knowledge.connect import Row
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.links import name_slug
from brain.knowledge.domain.names import name_key
from brain.tool import ToolContext
from brain.trickbook.collation import LOOSE
from brain.trickbook.trick_search import Wanted, by_name
from brain.trickbook.tricks import TRICK_FIELDS, keys_of, sport_of, trick_name

_MOST_ROWS: Final = 500
_MOST_SPORTS: Final = 5


async def named_tricks(context: ToolContext, name: str, sport: str | None = None) -> list[Row]:
    """The tricks of this very name or alias; else the one that the words name at most length; names before aliases."""
    rows = [row for row in await by_name(context, name, Wanted(sport)) if Wanted(sport).takes(row)]
    exact = [row for row in rows if name_key(name) in keys_of(row)]
    own = [row for row in exact if name_key(name) == name_key(trick_name(Fields(row)))]
    return own or exact or rows[:1]


async def all_named(context: ToolContext, names: Sequence[str]) -> list[Row]:
    """The tricks that any of these names means, by name, alias or slug; all in three look-ups."""
    texts = sorted({text for name in names for text in (name, name_key(name)) if text})
    slugs = sorted({slug for name in names if (slug := name_slug(name))})
    if not texts:
        return []
    database, session = context.database, context.session
    looked_up = await asyncio.gather(
        *(
            database["trickipedia"]
            .find({field: {"$in": values}}, TRICK_FIELDS, collation=collation, session=session)
            .limit(_MOST_ROWS)
            .to_list()
            for field, values, collation in (("name", texts, LOOSE), ("aliases", texts, LOOSE), ("url", slugs, None))
        )
    )
    wanted = {name_key(name) for name in names}
    rows = {str(row["_id"]): row for rows in looked_up for row in rows if not wanted.isdisjoint(keys_of(row))}
    return [rows[id_] for id_ in sorted(rows)]


async def rider_sports(context: ToolContext) -> list[str]:
    """The sports of the rider's own profile; none for nobody."""
    if context.user_id is None:
        return []
    user = await context.database["users"].find_one(
        {"_id": ObjectId(context.user_id)}, {"sports": 1}, session=context.session
    )
    return Fields(user or {}).sports("sports")[:_MOST_SPORTS]


def of_sports(rows: Sequence[Row], sports: Collection[str]) -> list[Row]:
    """Those in one of these sports, when there are any, else all: one name is often a trick in several."""
    return [row for row in rows if sport_of(row) in sports] or list(rows)


async def tricks_by_id(context: ToolContext, ids: Iterable[ObjectId | str]) -> dict[ObjectId | str, Row]:
    """The tricks of these ids that exist."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    found = context.database["trickipedia"].find({"_id": {"$in": wanted}}, TRICK_FIELDS, session=context.session)
    return {row["_id"]: row for row in await found.limit(_MOST_ROWS).to_list()}
