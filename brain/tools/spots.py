"""Spots by words and places: the approved ones, the best rated first."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field
from pymongo.collation import Collation

from brain.knowledge.connect import Row
from brain.knowledge.domain.names import contains
from brain.knowledge.domain.phrases import telling
from brain.knowledge.domain.visibility import APPROVED_SPOTS
from brain.knowledge.sports import filed_under, known_sport, spellings
from brain.registry import AnyTool
from brain.spots import SPOT_FIELDS, SpotFound, spot_cards, spot_facts
from brain.tool import Arguments, Card, Result, Tool, ToolContext, Words

MOST_SPOTS: Final = 5
IMPORTANT: Final = "These spots are in TrickBook; link to their webUrl. Say so if you suggest places that are not."
LOOSE: Final = Collation("en", strength=1)
"""Neither case nor accents of a state count; its index has the same collation (`brain.indexes`)."""
_MOST_WORDS: Final = 6
_WORDS_IN: Final = ("name", "city", "tags", "aliases")


class SearchSpots(Arguments):
    """What, where, for which sport; all may be left out."""

    query: Words | None = Field(default=None, description="a part of the name")
    state: Words | None = Field(default=None, description="the whole name, such as California")
    city: Words | None = Field(default=None, description="a part of its name")
    sport: Words | None = Field(default=None, description="such as skateboarding")


class SpotRated(SpotFound):
    """A spot, with the stars that older prompts expect: 0 when nobody has rated it."""

    rating: float | None = 0


class SpotsTold(Result):
    """The best rated first."""

    results: list[SpotRated]
    total: int
    important: str | None = None
    message: str | None = None
    notes: list[str] | None = None


async def search_spots(context: ToolContext, arguments: SearchSpots) -> SpotsTold:
    """The approved spots whose name holds the query, in that state and city.

    Where no name does, those with all its words in name, city and tags: "plaza seattle".
    """
    sport, query = known_sport(arguments.sport), arguments.query
    rows = await _found(context, arguments, sport, {"name": contains(query)} if query else {})
    if not rows and query and (words := telling(query)[:_MOST_WORDS]):
        anywhere = [{"$or": [{field: contains(word)} for field in _WORDS_IN]} for word in words]
        rows = await _found(context, arguments, sport, {"$and": anywhere})
    facts = [spot_facts(row, context.origin) for row in rows]
    found = [SpotRated.model_validate({**fact, "rating": fact["rating"] or 0}) for fact in facts]
    unknown = arguments.sport is not None and sport is None
    return SpotsTold(
        results=found,
        total=len(found),
        important=IMPORTANT if found else None,
        message=None if found else "No such spot in TrickBook. Tell the rider so if you suggest others.",
        notes=["the sport was ignored: TrickBook does not know it"] if unknown else None,
    )


async def _found(
    context: ToolContext, arguments: SearchSpots, sport: str | None, named: Mapping[str, Any]
) -> list[Row]:
    """The best rated. Only the first stage is served by an index, of the state where one is given."""
    rest = [named] if named else []
    if arguments.city:
        rest.append({"city": contains(arguments.city)})
    if sport is not None:
        rest.append({"sportTypes": {"$in": [word for key in filed_under(sport) for word in spellings(key)]}})
    pipeline: list[Mapping[str, Any]] = [
        {"$match": {**APPROVED_SPOTS, **({"state": arguments.state} if arguments.state else {})}},
        *([{"$match": {"$and": rest}}] if rest else []),
        {"$sort": {"rating": -1, "_id": 1}},
        {"$limit": MOST_SPOTS},
        {"$project": SPOT_FIELDS},
    ]
    options: dict[str, Any] = {"collation": LOOSE} if arguments.state else {}
    return await (await context.database["spots"].aggregate(pipeline, session=context.session, **options)).to_list()


def _cards(result: SpotsTold) -> list[Card]:
    """A card each, without stars for a spot that has none."""
    return spot_cards([spot.model_copy(update={"rating": spot.rating or None}) for spot in result.results])


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="search_spots",
        description=(
            "Find skate parks, street spots, resorts and surf breaks in TrickBook by name, state, city and sport; "
            "the best rated first. For a place on the map use spots_near_me."
        ),
        arguments=SearchSpots,
        result=SpotsTold,
        handler=search_spots,
        cards=_cards,
    ),
)
