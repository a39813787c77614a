"""The trick catalogue: one tool that finds tricks by name, slang, words and meaning."""

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from brain.knowledge.domain.difficulty import WORDS, difficulty
from brain.knowledge.sports import known_sport
from brain.tool import AnyTool, Arguments, Result, Tool, ToolContext, Words
from brain.trickbook.trick_search import Wanted, find_tricks, list_tricks
from brain.trickbook.tricks import TrickFound, told_tricks, trick_cards

MOST_TRICKS: Final = 5
IMPORTANT: Final = "These tricks are in TrickBook's Trickipedia; link to webUrl when you name one."


class SearchTrickipedia(Arguments):
    """What to look for; without `search` the first tricks by name."""

    search: Words | None = Field(default=None, description="a trick's name, slang or a description in plain words")
    category: Words | None = Field(default=None, description="a sport, such as skateboarding")
    difficulty: Words | None = Field(default=None, description="beginner, intermediate, advanced or expert")


class TricksTold(Result):
    """The best first; `notes` says what was left out of account."""

    results: list[TrickFound]
    total: int
    important: str | None = None
    message: str | None = None
    notes: list[str] | None = None


async def search_trickipedia(context: ToolContext, arguments: SearchTrickipedia) -> TricksTold:
    """Tricks by name, slang, words and meaning, or the first of a sport. Raises KnowledgeError when nothing answers."""
    wanted, notes = _understood(arguments)
    if arguments.search is None:
        rows = await list_tricks(context, wanted, MOST_TRICKS)
    else:
        found = await find_tricks(context, arguments.search, wanted, MOST_TRICKS)
        rows = found.rows
        notes += [
            f"the search by {leg} failed, so results may be missing; say so if it matters" for leg in found.failed
        ]
    tricks = await told_tricks(context, rows)
    return TricksTold(
        results=tricks,
        total=len(tricks),
        important=IMPORTANT if tricks else None,
        message=None if tricks else "No such trick in TrickBook. Say so if you describe one from your own knowledge.",
        notes=notes or None,
    )


def _understood(arguments: SearchTrickipedia) -> tuple[Wanted, list[str]]:
    """The filters, and a sentence for each hint that is none: old prompts ask for categories like "flatground"."""
    notes: list[str] = []
    sport, hard = known_sport(arguments.category), difficulty(arguments.difficulty)
    if arguments.category is not None and sport is None:
        notes.append("the category was ignored: it is a sport here, such as skateboarding or snowboarding")
    if arguments.difficulty is not None and hard is None:
        notes.append(f"the difficulty was ignored: it is one of {', '.join(WORDS)}")
    return Wanted(sport, hard), notes


def _links(result: TricksTold) -> Sequence[str]:
    return [tutorial.url for trick in result.results for tutorial in trick.tutorials]


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="search_trickipedia",
        description=(
            "Find tricks in TrickBook's catalogue: how they are done, tutorials, what to learn before and after. "
            "Without search: the first tricks of a sport by name."
        ),
        arguments=SearchTrickipedia,
        result=TricksTold,
        handler=search_trickipedia,
        cards=lambda result: trick_cards(result.results),
        links=_links,
    ),
)
