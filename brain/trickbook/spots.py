"""Spots as the tools tell of them: who may see one, what is read of it, what is said of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bson import ObjectId
from pydantic import Field

from brain.cards import made, spot_card
from brain.errors import ToolFailure
from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import cut
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import same_id
from brain.knowledge.domain.links import spot_path
from brain.knowledge.domain.numbers import count, number
from brain.knowledge.domain.visibility import spot_is_public
from brain.tool import Card, Result, ToolContext

LONGEST_DESCRIPTION: Final = 150
"""Characters in a list of spots."""
SPOT_FIELDS: Final[Mapping[str, Any]] = dict.fromkeys(
    [
        *("name", "description", "latitude", "longitude", "city", "state", "country", "category", "parkType", "tags"),
        *("sportTypes", "rating", "reviewCount", "imageURL", "approvalStatus", "userId", "features", "aliases"),
    ],
    1,
)
"""What is read of a spot: no place cache, no photos of users."""


class SpotFound(Result):
    """A spot in a list of them. A spot that nobody has rated has no rating; 0 is one."""

    id: str
    name: str
    city: str | None = None
    state: str | None = None
    country: str | None = None
    category: str | None = None
    sport_types: list[str] = Field(default_factory=list)
    rating: float | None = None
    review_count: int | None = None
    description: str | None = None
    only_yours: bool | None = None
    """True when nobody but the rider sees it."""
    web_url: str | None = None
    image_url: str | None = Field(default=None, exclude=True)  # for the card; a model has no use for it


def spot_facts(row: Row, origin: str, longest: int = LONGEST_DESCRIPTION) -> dict[str, Any]:
    """The fields of a `SpotFound`, from a row of any shape."""
    fields = Fields(row)
    path, image, rating = spot_path(fields), row.get("imageURL"), number(row.get("rating"))
    return {
        "id": str(row["_id"]),
        "name": fields.line("name")[:LONGEST_DESCRIPTION] or "A spot",
        "city": fields.label("city"),
        "state": fields.label("state"),
        "country": fields.label("country"),
        "category": fields.label("category"),
        "sport_types": fields.sports("sportTypes"),
        "rating": rating if rating is not None and 0 <= rating <= 5 else None,  # noqa: PLR2004 - stars
        "review_count": count(row.get("reviewCount")),
        "description": cut(fields.line("description"), longest),
        "only_yours": None if spot_is_public(row) else True,
        "web_url": f"{origin}{path}" if path else None,
        "image_url": image if isinstance(image, str) else None,
    }


def spot_cards(spots: Sequence[SpotFound]) -> list[Card]:
    """A card each."""
    return made(
        spot_card(
            spot.id,
            spot.name,
            category=spot.category,
            rating=spot.rating,
            review_count=spot.review_count,
            city=spot.city,
            state=spot.state,
            image_url=spot.image_url,
        )
        for spot in spots
    )


def sees_spot(context: ToolContext, row: Row) -> bool:
    """An approved spot is everybody's, any other its owner's alone."""
    return spot_is_public(row) or (context.user_id is not None and same_id(row.get("userId"), context.user_id))


async def visible_spot(context: ToolContext, spot_id: str) -> Row:
    """The spot, when this rider may see it.

    Raises ToolFailure (`not_found`), alike for one that does not exist and for one that is not theirs to see.
    """
    row = await context.database["spots"].find_one({"_id": ObjectId(spot_id)}, SPOT_FIELDS, session=context.session)
    if row is None or not sees_spot(context, row):
        raise ToolFailure(
            code="not_found", message="there is no spot with this id: take one from search_spots or spots_near_me"
        )
    return row
