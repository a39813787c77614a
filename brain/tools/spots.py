"""Spots by words and places: the approved ones, the best rated first."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import Field

from brain.knowledge.connect import Row
from brain.knowledge.domain.names import contains
from brain.knowledge.domain.phrases import telling
from brain.knowledge.domain.places import is_country, is_in, is_state, parts, written
from brain.knowledge.domain.visibility import APPROVED_SPOTS, spot_is_public
from brain.knowledge.sports import filed_under, ignored_sport, known_sport, spellings
from brain.tool import AnyTool, Arguments, Card, Result, Tool, ToolContext, Words
from brain.trickbook.collation import LOOSE
from brain.trickbook.spots import SPOT_FIELDS, SpotFound, spot_cards, spot_facts

MOST_SPOTS: Final = 5
IMPORTANT: Final = "These spots are in TrickBook; link to their webUrl. Say so if you suggest places that are not."
_MOST_WORDS: Final = 6
_PLACES: Final = ("city", "state", "country")
_WORDS_IN: Final = ("name", "tags", "aliases", *_PLACES)


class SearchSpots(Arguments):
    """What, where, for which sport; all may be left out."""

    query: Words | None = Field(default=None, description="a part of its name, or words of its features and place")
    state: Words | None = Field(default=None, description="such as California or CA")
    city: Words | None = Field(default=None, description="such as Portland")
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
    """The approved spots of that very name; else those whose name holds the query, in that state and city.

    Where no name does, those with all its words in name, features and place: "plaza seattle".
    """
    state = parts(arguments.state) if arguments.state else []
    approved = {**APPROVED_SPOTS, **({"state": {"$in": written(state[0])}} if state else {})}
    rest = [*_around(state[1:]), *_rest(arguments)]
    rows: list[Row] = []
    if arguments.query:
        rows = await _found(context, {"name": arguments.query}, [approved, *rest], loose=True)
    for words in _ways(arguments.query):
        rows = rows or await _found(context, approved, [*words, *rest], loose=arguments.state is not None)
    facts = [spot_facts(row, context.origin) for row in rows]
    found = [SpotRated.model_validate({**fact, "rating": fact["rating"] or 0}) for fact in facts]
    ignored = ignored_sport(arguments.sport)
    return SpotsTold(
        results=found,
        total=len(found),
        important=IMPORTANT if found else None,
        message=None if found else "No such spot in TrickBook. Tell the rider so if you suggest others.",
        notes=[ignored] if ignored else None,
    )


def _rest(arguments: SearchSpots) -> list[dict[str, Any]]:
    """The conditions on city and sport, which no index serves."""
    found: list[dict[str, Any]] = []
    if arguments.city:
        city, *beyond = parts(arguments.city)
        found += [is_in(city, ["city"]), *_around(beyond)]
    sport = known_sport(arguments.sport)
    if sport is not None:
        found.append({"sportTypes": {"$in": [word for key in filed_under(sport) for word in spellings(key)]}})
    return found


def _around(beyond: Sequence[str]) -> list[dict[str, Any]]:
    """The conditions that a spot is in all that was said after its town or state; what comes last may be a country."""
    last = len(beyond) - 1
    return [
        is_in(part, _PLACES) if at < last or is_state(part) else _or_untold(is_in(part, _PLACES))
        for at, part in enumerate(beyond)
    ]


def _or_untold(country: dict[str, Any]) -> dict[str, Any]:
    """The same, or in a spot that tells no country, as most do not: only an import writes it."""
    return {"$or": [*country["$or"], {"country": {"$in": [None, ""]}}]}


def _ways(query: str | None) -> list[list[dict[str, Any]]]:
    """In which ways a spot may hold the query, one to be tried after the other."""
    if not query:
        return [[]]
    said, words = parts(query), list[dict[str, Any]]()
    for part in said:
        known = is_state(part) or is_country(part)
        found = [is_in(word, _WORDS_IN) for word in ([part] if known else telling(part))]
        words += [_or_untold(word) for word in found] if is_country(part) and len(said) > 1 else found
    return [[{"name": contains(query)}], *([words[:_MOST_WORDS]] if words else [])]


async def _found(
    context: ToolContext, first: Mapping[str, Any], rest: Sequence[Mapping[str, Any]], *, loose: bool
) -> list[Row]:
    """The best rated. `first` is served by an index: of the name, of the state, or of the rating."""
    pipeline: list[Mapping[str, Any]] = [
        {"$match": first},
        *([{"$match": {"$and": rest}}] if rest else []),
        {"$sort": {"rating": -1, "_id": 1}},
        {"$limit": MOST_SPOTS},
        {"$project": SPOT_FIELDS},
    ]
    options: dict[str, Any] = {"collation": LOOSE} if loose else {}
    rows = await context.database["spots"].aggregate(pipeline, session=context.session, **options)
    return [row for row in await rows.to_list() if spot_is_public(row)]  # without case, "APPROVED" is approved too


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
