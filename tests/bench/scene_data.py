"""A hundred thousand documents of the collections beside the tricks: videos, feed, events, riders, what spots say."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from brain.knowledge.connect import Row
from tests.bench.tool_data import id_of, rider, trick_name
from tests.support.tool_world import NOW

_SPORTS: Final = ("skateboarding", "snowboarding", "surfing", "bmx")
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_HALF_A_MINUTE: Final = timedelta(seconds=30)


def told_spot(number: int) -> str:
    """The id of an approved spot with reviews and history."""
    return str(id_of(0x30, number // 10 * 10 + 1))


def listed(number: int) -> str:
    """The id of a trick on a list of the rider of this number."""
    return str(id_of(0x74, number))


def place(number: int) -> Mapping[str, float]:
    """Where a spot is."""
    return {"latitude": -60.0 + number % 1200 * 0.1, "longitude": -180.0 + number // 1200 * 4.3}


def _user(number: int) -> Row:
    return {
        "_id": id_of(0x10, number),
        "name": f"Rider {number}",
        "email": f"rider{number}@example.com",
        "sports": [_SPORTS[number % 4]],
        "homies": [str(id_of(0x10, number + step)) for step in range(1, 21)],
        "subscription": {"plan": "premium", "status": "active"},
        "riderProfile": {"homeSpot": str(id_of(0x30, number - number % 10 + 1))},
    }


def _spot_list(number: int) -> Row:
    return {
        "_id": id_of(0x75, number),
        "name": f"List {number}",
        "userId": rider(number),
        "spotIds": [id_of(0x30, number + step) for step in range(4)],
        "isDefaultSaved": number < 20_000,
    }


def _review(number: int) -> Row:
    return {
        "_id": id_of(0x76, number),
        "spotId": str(id_of(0x30, number // 10 * 10 + 1)),  # ten reviews each
        "userId": rider(number),
        "rating": number % 5 + 1,
        "content": "Smooth ground and kind people. " * 8,
        "helpfulCount": number % 9,
        "status": "active" if number % 5 else "deleted",
        "createdAt": _START + number * _HALF_A_MINUTE,
    }


def _history(number: int) -> Row:
    return {
        "_id": id_of(0x77, number),
        "spotId": id_of(0x30, number // 10 * 10 + 1),
        "trickName": trick_name(number),
        "skaterName": f"Rider {number}",
        "verified": number % 2 == 0,
        "upvotes": number % 9,
        "year": 2000 + number % 27,
    }


def _film(number: int) -> Row:
    return {
        "_id": id_of(0x40, number),
        "slug": f"film-{number}",
        "type": "film",
        "title": f"Film {number}",
        "description": f"A winter with a {trick_name(number)} that took three nights. " + "Long lines. " * 20,
        "tags": ["street", "full length"],
        "sportTypes": [_SPORTS[number % 4]],
        "releaseYear": 1990 + number % 37,
        "isPublished": number % 10 > 0,
    }


def _library(number: int) -> Row:
    return {
        "_id": id_of(0x41, number),
        "type": "tutorial",
        "title": f"Your first {trick_name(number)}",
        "description": "A slow, kind lesson. " * 10,
        "status": "draft" if number % 10 == 0 else "published",
        "sportTypes": [_SPORTS[number % 4]],
        "releaseYear": 1990 + number % 37,
    }


def _post(number: int) -> Row:
    return {
        "_id": id_of(0x78, number),
        "userId": rider(number),
        "caption": "One more try, and it was the one. " * 4,
        "sportTypes": ["surf"] if number % 4 == 2 else [_SPORTS[number % 4]],
        "visibility": ("public", "homies", "private")[number % 3],
        "status": "published",
        "stats": {"likes": number % 50, "comments": 1, "views": number},
        "createdAt": NOW - number * _HALF_A_MINUTE,
    }


def _event(number: int) -> Row:
    """One in a hundred is to come, as where years of events are kept."""
    start = NOW + timedelta(days=number // 100 + 1 if number % 100 == 0 else -(number % 3000) - 1)
    return {
        "_id": id_of(0x70, number),
        "slug": f"event-{number}",
        "title": f"Jam {number}",
        "sports": [_SPORTS[number % 4].title()],
        "startAt": start,
        "endAt": start + timedelta(hours=6) if number % 3 else None,
        "status": "scheduled",
        "venue": {
            "name": f"Hall {number}",
            "city": f"City {number % 997}",
            "lat": -60.0 + number % 1200 * 0.1,
            "lng": -180.0 + number // 1200 * 4.3,
        },
    }


SCENE: Final[Mapping[str, Callable[[int], Row]]] = {
    "users": _user,
    "spotlists": _spot_list,
    "spot_reviews": _review,
    "spot_trick_history": _history,
    "couch_videos": _film,
    "media_library": _library,
    "feed_posts": _post,
    "events": _event,
}
"""A row of each collection by its number."""
