"""Tricks of the catalogue as the tools tell of them: what is read of one, what is said of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bson import ObjectId
from pydantic import Field

from brain.cards import made, trick_card
from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import cut
from brain.knowledge.domain.fields import Fields, is_word
from brain.knowledge.domain.links import trick_path
from brain.knowledge.domain.names import name_key
from brain.knowledge.domain.progression import Direction, Edge, edges
from brain.tool import Card, Result, ToolContext

LONGEST_DESCRIPTION: Final = 200  # characters
LONGEST_STEP: Final = 300
LONGEST_NAME: Final = 120
MOST_STEPS: Final = 3
MOST_ALIASES: Final = 4
MOST_TUTORIALS: Final = 4
MOST_NEIGHBOURS: Final = 6

TRICK_FIELDS: Final[Mapping[str, Any]] = dict.fromkeys(
    [
        *("name", "category", "sportTypes", "difficulty", "description", "steps", "aliases", "url", "images"),
        *("tutorials", "progression.prerequisites", "progression.nextSteps"),
    ],
    1,
)
"""What is read of a trick: no audit, no transcripts beside what a tutorial holds."""
_FACE: Final[Mapping[str, Any]] = {"name": 1, "difficulty": 1, "category": 1, "url": 1}


class Tutorial(Result):
    """A video that teaches it, on somebody else's site."""

    title: str | None = None
    platform: str | None = None
    url: str
    featured: bool
    professional: bool


class Neighbour(Result):
    """A trick before or after it, as the editors have reviewed it."""

    id: str
    name: str
    difficulty: str | None = None
    strength: str | None = None
    reason: str | None = None
    url: str | None = None


class TrickShown(Result):
    """What every tool tells of a trick of the catalogue, and its card shows."""

    id: str
    name: str
    difficulty: str | None = None
    description: str | None = None
    image_url: str | None = Field(default=None, exclude=True)  # for the card; a model has no use for it


class TrickFound(TrickShown):
    """A trick of the catalogue."""

    category: str | None = None
    sport: str | None = None
    steps: list[str]
    aliases: list[str]
    tutorials: list[Tutorial]
    prerequisites: list[Neighbour]
    next_steps: list[Neighbour]
    web_url: str | None = None


async def told_tricks(context: ToolContext, rows: Sequence[Row]) -> list[TrickFound]:
    """The rows, of any shape, with the names of their neighbours as they are now."""
    shown = [(row, {side: edges(Fields(row), side)[:MOST_NEIGHBOURS] for side in _SIDES}) for row in rows]
    targets = {edge.target for _, sides in shown for side in sides.values() for edge in side}
    faces = await _faces(context, targets)
    return [_told(row, {side: _neighbours(sides[side], faces, context.origin) for side in _SIDES}, context.origin)
            for row, sides in shown]  # fmt: skip


def trick_cards(tricks: Iterable[TrickShown]) -> list[Card]:
    """A card each."""
    return made(
        trick_card(
            trick.id,
            trick.name,
            difficulty=trick.difficulty,
            description=trick.description,
            image_url=trick.image_url,
        )
        for trick in tricks
    )


def tutorials(fields: Fields, most: int = MOST_TUTORIALS) -> list[Tutorial]:
    """The tutorials that can be watched (an `availability` other than active hides one), the featured ones first."""
    found: list[Tutorial] = []
    for tutorial in fields.children("tutorials"):
        state, url = tutorial.raw("availability"), web_address(tutorial.raw("canonicalUrl"))
        if url is None or not (state is None or is_word(state, "active")):
            continue
        found.append(
            Tutorial(
                title=tutorial.line("title")[:LONGEST_NAME] or None,
                platform=tutorial.label("platform"),
                url=url,
                featured=tutorial.raw("featured") is True,
                professional=tutorial.child("instructor").raw("isProfessional") is True,
            )
        )
    return sorted(found, key=lambda tutorial: not tutorial.featured)[:most]


def trick_name(fields: Fields) -> str:
    """Its name, or a stand-in."""
    return fields.line("name")[:LONGEST_NAME] or "A trick"


def trick_link(fields: Fields, origin: str) -> str | None:
    """The address of its page, or None."""
    path = trick_path(fields)
    return f"{origin}{path}" if path else None


def trick_image(fields: Fields) -> str | None:
    """The first image that has an address."""
    return next((image for image in fields.lines("images") if web_address(image)), None)


def keys_of(row: Row) -> set[str]:
    """Every name of a trick, folded."""
    fields = Fields(row)
    return {name_key(name) for name in (fields.line("name"), *fields.lines("aliases")) if name}


def sport_of(row: Row) -> str | None:
    """The sport of a trick."""
    return Fields(row).sport("category", "sportTypes")


_LONGEST_ADDRESS: Final = 2_000
_SIDES: Final[tuple[Direction, ...]] = ("prerequisites", "nextSteps")


def web_address(value: object) -> str | None:
    """An address of the web as it can be shown, or None."""
    if not isinstance(value, str) or not value.startswith(("https://", "http://")) or len(value) > _LONGEST_ADDRESS:
        return None
    return value if value.isprintable() and " " not in value else None


def _told(row: Row, sides: Mapping[Direction, list[Neighbour]], origin: str) -> TrickFound:
    fields = Fields(row)
    return TrickFound(
        id=str(row["_id"]),
        name=trick_name(fields),
        category=fields.label("category"),
        sport=sport_of(row),
        difficulty=fields.label("difficulty"),
        description=cut(fields.line("description"), LONGEST_DESCRIPTION),
        steps=[cut(step, LONGEST_STEP) or "" for step in fields.lines("steps")[:MOST_STEPS]],
        aliases=[alias[:LONGEST_NAME] for alias in fields.lines("aliases")[:MOST_ALIASES]],
        tutorials=tutorials(fields),
        prerequisites=sides["prerequisites"],
        next_steps=sides["nextSteps"],
        web_url=trick_link(fields, origin),
        image_url=trick_image(fields),
    )


def _neighbours(shown: Sequence[Edge], faces: Mapping[ObjectId | str, Row], origin: str) -> list[Neighbour]:
    """Those that exist and have a name; a deleted trick leaves its edges behind."""
    found: list[Neighbour] = []
    for edge in shown:
        fields = Fields(faces.get(edge.target, {}))
        if fields.line("name"):
            found.append(
                Neighbour(
                    id=str(edge.target),
                    name=trick_name(fields),
                    difficulty=fields.label("difficulty"),
                    strength=edge.strength[:LONGEST_NAME] or None,
                    reason=cut(edge.reason, LONGEST_DESCRIPTION),
                    url=trick_link(fields, origin),
                )
            )
    return found


async def _faces(context: ToolContext, targets: Iterable[ObjectId | str]) -> dict[ObjectId | str, Row]:
    wanted = list(targets)
    if not wanted:
        return {}
    found = context.database["trickipedia"].find({"_id": {"$in": wanted}}, _FACE, session=context.session)
    return {row["_id"]: row for row in await found.to_list()}
