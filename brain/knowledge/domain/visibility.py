"""What the public may see, by kind; everything else is seen by nobody here (deny by default).

The constants are the same rules as filters for the database. They are the rules of the backend's public routes.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from brain.knowledge.domain.fields import Fields, is_word

APPROVED_SPOTS: Final[Mapping[str, object]] = {"approvalStatus": "approved"}
PUBLISHED_FILMS: Final[Mapping[str, object]] = {"isPublished": True, "type": "film"}
PUBLISHED_LIBRARY: Final[Mapping[str, object]] = {"status": "published"}
"""Rows of the older `media_library`."""
ACTIVE: Final[Mapping[str, object]] = {"status": "active"}
"""Spot reviews and comments; the others are deleted."""

_OVER: Final = ("completed", "cancelled", "canceled")
_SHOWN_EDGES: Final = ("reviewed", "published")


def spot_is_public(document: Mapping[str, object]) -> bool:
    """Approved; any other spot is its owner's alone."""
    return document.get("approvalStatus") == "approved"


def film_is_public(document: Mapping[str, object]) -> bool:
    """Published, and a film."""
    return document.get("isPublished") is True and document.get("type") == "film"


def library_is_public(document: Mapping[str, object]) -> bool:
    """A row of the older library that is published; the admin's form may store a status of any type."""
    return document.get("status") == "published"


def rider_is_public(document: Mapping[str, object]) -> bool:
    """An editorial page that is published."""
    return is_word(document.get("reviewStatus"), "published")


def coaching_is_public(document: Mapping[str, object]) -> bool:
    """Published, or without a status."""
    status = document.get("status")
    return status is None or is_word(status, "published")


def edge_is_public(edge: Fields) -> bool:
    """An edge of a trick's progression whose research is reviewed or published."""
    status = edge.child("research").raw("status")
    return any(is_word(status, word) for word in _SHOWN_EDGES)


def event_ends(fields: Fields) -> datetime | None:
    """When an event leaves the site: `endAt`, else `startAt` (or its legacy name). None when it has no date."""
    start, end = fields.date("startAt", "startDate"), fields.date("endAt")
    return end or start


def event_is_called_over(document: Mapping[str, object]) -> bool:
    """Whether the status says that it is over, whatever its dates."""
    return any(is_word(document.get("status"), word) for word in _OVER)


def event_is_upcoming(document: Mapping[str, object], now: datetime) -> bool:
    """Not over by status, and its end (else its start) in the future."""
    ends = event_ends(Fields(document))
    return not event_is_called_over(document) and ends is not None and ends > now
