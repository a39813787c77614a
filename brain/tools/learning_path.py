"""The way to a trick: everything it builds on, in the order in which to learn it, with what the rider has landed."""

from collections.abc import Mapping
from typing import Final

from bson import ObjectId
from pydantic import Field

from brain.cards import made, trick_card
from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import cut
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.learning import MOST_DEPTH, steps_to
from brain.knowledge.domain.names import name_key
from brain.knowledge.domain.progression import Edge, edges
from brain.knowledge.sports import ignored_sport, known_sport
from brain.tool import AnyTool, Arguments, Card, Result, Tool, ToolContext, Words, remarks
from brain.trickbook.lists import own_lists, tricks_on
from brain.trickbook.named_tricks import named_tricks, of_sports, rider_sports, tricks_by_id
from brain.trickbook.tricks import keys_of, sport_of, trick_link, trick_name

MOST_STEPS: Final = 40
"""Tricks of a way, the nearest to the goal; those of the catalogue have a dozen."""
LONGEST_REASON: Final = 200  # characters

Id = ObjectId | str
_Why = tuple[Row, Edge]
_STRENGTHS: Final = {"required": 0, "recommended": 1, "helpful": 2}


class LearningPath(Arguments):
    """To which trick."""

    trick_name: Words = Field(description="the trick to learn")
    sport: Words | None = Field(default=None, description="such as skateboarding; for a name that is in several")


class PathStep(Result):
    """A trick of the way. `depth` is its distance from the goal; `needed_for` the trick it prepares, and why.

    `covered` when the rider has landed a trick that builds on it.
    """

    id: str
    name: str
    difficulty: str | None = None
    depth: int
    landed: bool
    covered: bool | None = None
    needed_for: str | None = None
    strength: str | None = None
    reason: str | None = None
    web_url: str | None = None


class Path(Result):
    """The steps in order, the trick itself last; `next` is the first that is neither landed nor covered."""

    trick: str
    sport: str | None = None
    steps: list[PathStep]
    total: int
    landed: int
    next: str | None = None
    note: str | None = None


async def learning_path(context: ToolContext, arguments: LearningPath) -> Path:
    """What to learn before a trick, prerequisites first. Raises ToolFailure (`not_found`)."""
    rows = await named_tricks(context, arguments.trick_name, known_sport(arguments.sport))
    if not rows:
        raise ToolFailure(
            code="not_found", message="there is no such trick in TrickBook: look for it with search_trickipedia"
        )
    goal, names = of_sports(rows, await rider_sports(context))[0], await _landed(context)
    tricks = await _within_reach(context, goal)
    landed = {id_ for id_, row in tricks.items() if not names.isdisjoint(keys_of(row))}
    needs = {id_: _needs(row, tricks) for id_, row in tricks.items()}
    targets = {id_: [edge.target for edge in found] for id_, found in needs.items()}
    covered = {step.trick for id_ in landed for step in steps_to(id_, targets)} - landed
    order = steps_to(goal["_id"], targets)
    depths = {step.trick: step.depth for step in order}
    steps = [
        _told(tricks[id_], _why(id_, depths, needs, tricks), context.origin).model_copy(
            update={"depth": depth, "landed": id_ in landed, "covered": id_ in covered or None}
        )
        for id_, depth in depths.items()
    ]
    others = sorted({sport for row in rows if (sport := sport_of(row))} - {sport_of(goal)})
    return Path(
        trick=trick_name(Fields(goal)),
        sport=sport_of(goal),
        steps=steps,
        total=len(steps),
        landed=sum(step.landed for step in steps),
        next=next((step.name for step in steps if not (step.landed or step.covered)), None),
        note=remarks(
            ignored_sport(arguments.sport),
            f"there is a trick of this name in {', '.join(others)} too; name the sport for it" if others else None,
        ),
    )


async def _landed(context: ToolContext) -> frozenset[str]:
    """The folded names of what the rider has landed; nothing for nobody."""
    if context.user_id is None:
        return frozenset()
    lists = await tricks_on(context, await own_lists(context))
    return frozenset(
        name_key(trick.name) for tricks in lists.values() for trick in tricks if trick.progress == "landed"
    )


async def _within_reach(context: ToolContext, goal: Row) -> dict[Id, Row]:
    """The trick and its prerequisites' prerequisites, level by level: those that exist, of the same sport."""
    found: dict[Id, Row] = {goal["_id"]: goal}
    front = [goal]
    for _ in range(MOST_DEPTH):
        targets = [edge.target for row in front for edge in edges(Fields(row), "prerequisites")]
        new = list(dict.fromkeys(id_ for id_ in targets if id_ not in found))[: MOST_STEPS - len(found)]
        rows = await tricks_by_id(context, new)
        front = [rows[id_] for id_ in new if id_ in rows and _belongs(rows[id_], goal)]
        found |= {row["_id"]: row for row in front}
    return found


def _belongs(row: Row, goal: Row) -> bool:
    return bool(Fields(row).line("name")) and sport_of(row) == sport_of(goal)


def _needs(row: Row, tricks: Mapping[Id, Row]) -> list[Edge]:
    """The prerequisites of a trick: what is required before what is recommended, before what helps."""
    shown = [edge for edge in edges(Fields(row), "prerequisites") if edge.target in tricks]
    return sorted(shown, key=lambda edge: (_STRENGTHS.get(edge.strength.lower(), len(_STRENGTHS)), edge.order))


def _why(id_: Id, depths: Mapping[Id, int], needs: Mapping[Id, list[Edge]], tricks: Mapping[Id, Row]) -> _Why | None:
    """The trick nearest to the goal that needs this one, and the edge that says so; None for the goal."""
    for trick, found in needs.items():
        edge = next((edge for edge in found if edge.target == id_), None)
        if edge is not None and trick in depths and depths[trick] == depths[id_] - 1:
            return tricks[trick], edge
    return None


def _told(row: Row, why: _Why | None, origin: str) -> PathStep:
    fields = Fields(row)
    return PathStep(
        id=str(row["_id"]),
        name=trick_name(fields),
        difficulty=fields.label("difficulty"),
        depth=0,
        landed=False,
        needed_for=trick_name(Fields(why[0])) if why else None,
        strength=why[1].strength[:40] or None if why else None,
        reason=cut(why[1].reason, LONGEST_REASON) if why else None,
        web_url=trick_link(fields, origin),
    )


def _cards(path: Path) -> list[Card]:
    """A card for the next trick to learn."""
    step = next((step for step in path.steps if step.name == path.next), None)
    return made([trick_card(step.id, step.name, difficulty=step.difficulty)] if step else [])


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="learning_path",
        description="The way to a trick: what to learn before it, in order, and which of it the rider has landed.",
        arguments=LearningPath,
        result=Path,
        handler=learning_path,
        cards=_cards,
    ),
)
