"""What to learn next: after a named trick, from what the rider has landed, or where beginners begin.

Only edges that the editors reviewed or published lead anywhere, and only within a sport. The three paths and their
limits are those of the backend's own tool.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from pydantic import Field

from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import cut
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.names import name_key
from brain.knowledge.domain.progression import Edge, edges
from brain.knowledge.sports import ignored_sport, known_sport
from brain.tool import AnyTool, Arguments, Result, Tool, ToolContext, Words, remarks
from brain.trickbook.lists import own_lists, tricks_on
from brain.trickbook.named_tricks import all_named, named_tricks, of_sports, rider_sports, tricks_by_id
from brain.trickbook.trick_search import Wanted, list_tricks
from brain.trickbook.tricks import TrickShown, keys_of, sport_of, trick_cards, trick_image, trick_link, trick_name

MOST_AFTER_ONE: Final = 4
MOST_RECOMMENDED: Final = 5
LONGEST_TEXT: Final = 200  # characters
_MOST_LANDED: Final = 200
_MOST_BEGINNER: Final = 40
_NOBODY: Final = "nobody is signed in, so what they have landed is not known"

Basis = Literal["next_steps", "landed_tricks", "beginner_tricks"]


class RecommendNextTrick(Arguments):
    """After which trick, in which sport; both may be left out."""

    trick_name: Words | None = Field(default=None, description="a trick that the rider can do")
    sport: Words | None = Field(default=None, description="such as skateboarding")


class Recommended(TrickShown):
    """A trick to learn, after which one and why; `on_your_list` when the rider has it on a list."""

    sport: str | None = None
    after: str | None = None
    reason: str | None = None
    on_your_list: bool | None = None
    web_url: str | None = None


class NextTricks(Result):
    """The best first. `basis` says what they follow from."""

    basis: Basis
    recommendations: list[Recommended]
    source: Literal["trickipedia"] = "trickipedia"
    note: str | None = None


@dataclass(frozen=True, slots=True)
class _Rider:
    """What the rider can do and has in mind, by folded name; the latest landed names as typed; their sports."""

    landed: frozenset[str]
    listed: frozenset[str]
    latest: tuple[str, ...]
    sports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """A trick to learn, and the edge that leads to it from another, if one does."""

    source: Row | None
    edge: Edge | None
    target: Row


async def recommend_next_trick(context: ToolContext, arguments: RecommendNextTrick) -> NextTricks:
    """Next steps of the named trick; else of what the rider has landed; else tricks for beginners.

    Of who is not signed in nothing is known to be landed: without a trick or a sport there is nothing to go by.
    Raises ToolFailure (`not_signed_in`).
    """
    if context.user_id is None and arguments.trick_name is None and arguments.sport is None:
        message = f"{_NOBODY}: give a trick or a sport, or ask them to sign in"
        raise ToolFailure(code="not_signed_in", message=message)
    sport, notes = known_sport(arguments.sport), list(filter(None, [ignored_sport(arguments.sport)]))
    rider = await _rider(context)
    if arguments.trick_name is not None:
        rows = of_sports(await named_tricks(context, arguments.trick_name, sport), rider.sports)
        steps = [step for step in await _steps(context, rows) if not has(step.target, rider.landed)]
        if steps:
            best = _each_once(steps, lambda step: (_order(step), trick_name(Fields(step.target))))
            return _told("next_steps", best[:MOST_AFTER_ONE], rider, context.origin, notes)
        notes.append(_nothing_after(arguments.trick_name, rows))
    named = [row for row in await all_named(context, rider.latest) if Wanted(sport).takes(row)]
    known = of_sports(named, rider.sports)
    steps = [step for step in await _steps(context, known) if not has(step.target, rider.listed)]
    if steps:
        return _told("landed_tricks", _by_readiness(steps, known)[:MOST_RECOMMENDED], rider, context.origin, notes)
    notes.append(_nothing_from_landed(context, rider))
    sports = [sport] if sport else [*rider.sports] or [None]
    if sports == [None]:
        notes.append("ask which sport they ride")
    steps = [_Step(None, None, row) for row in await _beginner(context, sports, rider)]
    return _told("beginner_tricks", steps[:MOST_RECOMMENDED], rider, context.origin, notes)


async def _rider(context: ToolContext) -> _Rider:
    if context.user_id is None:
        return _Rider(frozenset(), frozenset(), (), ())
    lists = await tricks_on(context, await own_lists(context))
    tricks = [trick for several in lists.values() for trick in several]
    landed = [trick.name for trick in tricks if trick.progress == "landed"]
    return _Rider(
        landed=frozenset(name_key(name) for name in landed),
        listed=frozenset(name_key(trick.name) for trick in tricks),
        latest=tuple(landed[-_MOST_LANDED:]),
        sports=tuple(await rider_sports(context)),
    )


def has(trick: Row, names: Collection[str]) -> bool:
    """Whether a trick of the catalogue is among these folded names, by its name or an alias."""
    return not keys_of(trick).isdisjoint(names)


async def _steps(context: ToolContext, sources: Sequence[Row]) -> list[_Step]:
    """Every next step of these tricks that exists, in the same sport."""
    shown = [(row, edge) for row in sources for edge in edges(Fields(row), "nextSteps")]
    targets = await tricks_by_id(context, [edge.target for _, edge in shown])
    steps = [_Step(row, edge, targets[edge.target]) for row, edge in shown if edge.target in targets]
    return [step for step in steps if step.source is not None and sport_of(step.target) == sport_of(step.source)]


def _order(step: _Step) -> float:
    """Where the editors put it among the next steps."""
    return step.edge.order if step.edge is not None else 0


def _by_readiness(steps: Sequence[_Step], known: Sequence[Row]) -> list[_Step]:
    """The tricks whose required prerequisites are landed first, of these the ones that most landed tricks lead to."""
    landed = {row["_id"] for row in known}
    ways = Counter(step.target["_id"] for step in steps)

    def place(step: _Step) -> tuple[float, ...]:
        needed = [edge for edge in edges(Fields(step.target), "prerequisites") if edge.strength == "required"]
        missing = sum(edge.target not in landed for edge in needed)
        return missing, -ways[step.target["_id"]], _order(step)

    return _each_once(steps, lambda step: (*place(step), trick_name(Fields(step.target))))


def _each_once(steps: Sequence[_Step], place: Callable[[_Step], tuple[object, ...]]) -> list[_Step]:
    """The steps by their place, the first one to each trick."""
    found: dict[object, _Step] = {}
    for step in sorted(steps, key=lambda step: cast("tuple[Any, ...]", place(step))):
        found.setdefault(step.target["_id"], step)
    return list(found.values())


async def _beginner(context: ToolContext, sports: Sequence[str | None], rider: _Rider) -> list[Row]:
    """Tricks for beginners that are on no list of the rider's, those that need least before them first."""
    rows = [row for sport in sports for row in await list_tricks(context, Wanted(sport, "beginner"), _MOST_BEGINNER)]
    new = [row for row in rows if not has(row, rider.listed)]
    return sorted(
        new, key=lambda row: (len(edges(Fields(row), "prerequisites")), trick_name(Fields(row)), str(row["_id"]))
    )


def _nothing_from_landed(context: ToolContext, rider: _Rider) -> str:
    if context.user_id is None:
        return _NOBODY
    return "nothing new follows from what the rider has landed" if rider.landed else "nothing is landed yet"


def _nothing_after(asked: str, rows: Sequence[Row]) -> str:
    if rows:
        return f"no next steps after {trick_name(Fields(rows[0]))} are left"
    return f"{asked} is not in TrickBook's Trickipedia"


def _told(basis: Basis, steps: Sequence[_Step], rider: _Rider, origin: str, notes: Sequence[str]) -> NextTricks:
    return NextTricks(
        basis=basis,
        recommendations=[_recommended(step, rider, origin) for step in steps],
        note=remarks(*notes),
    )


def _recommended(step: _Step, rider: _Rider, origin: str) -> Recommended:
    fields = Fields(step.target)
    return Recommended(
        id=str(step.target["_id"]),
        name=trick_name(fields),
        sport=sport_of(step.target),
        difficulty=fields.label("difficulty"),
        description=cut(fields.line("description"), LONGEST_TEXT),
        after=trick_name(Fields(step.source)) if step.source is not None else None,
        reason=cut(step.edge.reason, LONGEST_TEXT) if step.edge is not None else None,
        on_your_list=has(step.target, rider.listed) or None,
        web_url=trick_link(fields, origin),
        image_url=trick_image(fields),
    )


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="recommend_next_trick",
        description=(
            "What to learn next: after a trick by name, else from what the rider has landed, else for beginners of a "
            "sport."
        ),
        arguments=RecommendNextTrick,
        result=NextTricks,
        handler=recommend_next_trick,
        cards=lambda found: trick_cards(found.recommendations),
    ),
)
