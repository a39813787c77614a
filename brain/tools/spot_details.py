"""One spot with its lore: what riders say of it, and who did which trick there."""

from datetime import date
from typing import Final

from pydantic import Field

from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import cut
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import both_forms
from brain.knowledge.domain.numbers import count, number, year
from brain.knowledge.domain.visibility import ACTIVE
from brain.tool import AnyTool, Arguments, Id, Result, Tool, ToolContext
from brain.trickbook.spots import SpotFound, spot_cards, spot_facts, visible_spot

LONGEST_DESCRIPTION: Final = 600  # characters
LONGEST_REVIEW: Final = 300
LONGEST_STORY: Final = 200
MOST_REVIEWS: Final = 5
MOST_TRICKS: Final = 10


class SpotDetails(Arguments):
    """Which spot."""

    spot_id: Id = Field(description="id of the spot, from another tool's result")


class Review(Result):
    """What a rider wrote, in their words; stars from 1 to 5."""

    rating: float | None = None
    text: str | None = None
    visited: date | None = None
    helpful: int | None = None


class TrickDone(Result):
    """A trick that somebody did there, as another rider reported it; `verified` when the editors agree."""

    trick: str
    skater: str | None = None
    year: int | None = None
    source: str | None = None
    verified: bool
    upvotes: int | None = None
    story: str | None = None


class SpotTold(SpotFound):
    """The spot, the most helpful reviews, the most trusted tricks."""

    park_type: str | None = None
    features: list[str]
    reviews: list[Review]
    tricks_done: list[TrickDone]


async def spot_details(context: ToolContext, arguments: SpotDetails) -> SpotTold:
    """All that may be told of a spot. Raises ToolFailure (`not_found`)."""
    row = await visible_spot(context, arguments.spot_id)
    forms = both_forms(str(row["_id"]))
    reviews = context.database["spot_reviews"].find(
        {**ACTIVE, "spotId": {"$in": forms}},
        {"rating": 1, "content": 1, "visitDate": 1, "helpfulCount": 1},
        session=context.session,
    )
    tricks = context.database["spot_trick_history"].find(
        {"spotId": {"$in": forms}},
        dict.fromkeys(("trickName", "skaterName", "year", "source", "verified", "upvotes", "description"), 1),
        session=context.session,
    )
    fields = Fields(row)
    return SpotTold.model_validate(
        spot_facts(row, context.origin, LONGEST_DESCRIPTION)
        | {
            "park_type": fields.label("parkType"),
            "features": (fields.words("tags") or fields.words("features"))[:20],
            "reviews": [
                _review(found)
                for found in await reviews.sort([("helpfulCount", -1), ("createdAt", -1), ("_id", 1)])
                .limit(MOST_REVIEWS)
                .to_list()
            ],
            "tricks_done": [
                done
                for found in await tricks.sort([("verified", -1), ("upvotes", -1), ("createdAt", -1), ("_id", 1)])
                .limit(MOST_TRICKS)
                .to_list()
                if (done := _trick(found)) is not None
            ],
        }
    )


def _review(row: Row) -> Review:
    fields = Fields(row)
    rating, visited = number(row.get("rating")), fields.date("visitDate")
    return Review(
        rating=rating if rating is not None and 0 <= rating <= 5 else None,  # noqa: PLR2004 - stars
        text=cut(fields.line("content"), LONGEST_REVIEW),
        visited=visited.date() if visited else None,
        helpful=count(row.get("helpfulCount")),
    )


def _trick(row: Row) -> TrickDone | None:
    """None when it has no name."""
    fields = Fields(row)
    name = fields.label("trickName")
    if name is None:
        return None
    return TrickDone(
        trick=name,
        skater=fields.label("skaterName"),
        year=year(row.get("year")),
        source=fields.label("source"),
        verified=row.get("verified") is True,
        upvotes=count(row.get("upvotes")),
        story=cut(fields.line("description"), LONGEST_STORY),
    )


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="spot_details",
        description="One spot by id: what it is like, riders' reviews, and who did which trick there.",
        arguments=SpotDetails,
        result=SpotTold,
        handler=spot_details,
        cards=lambda told: spot_cards([told]),
    ),
)
