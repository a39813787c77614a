"""A hundred thousand documents of each collection that the tools read. A new collection is one builder and one line."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from bson import DBRef, ObjectId

from brain.knowledge.connect import Row

RIDERS: Final = 20_000
"""Riders that share the lists: five lists each at 100,000."""
STATES: Final = 50
_SIDES: Final = ("Frontside", "Backside", "Switch", "Nollie", "Fakie", "Half Cab", "Late", "Double")
_MOVES: Final = (
    "Kickflip",
    "Heelflip",
    "Boardslide",
    "Lipslide",
    "Shove-it",
    "Wallride",
    "Grab",
    "Air",
    "Grind",
    "Press",
)
_CATEGORIES: Final = ("Skateboarding", "Snowboarding", "Surfing", "BMX", "Inline Skating")
_LEVELS: Final = ("Beginner", "Intermediate", "Advanced")
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)


def id_of(prefix: int, number: int) -> ObjectId:
    """The id of a row; its first bytes grow with the number, as those of real ids do with time."""
    return ObjectId(f"{prefix:02x}{number:022d}")


def rider(number: int) -> str:
    """The id of a rider."""
    return str(id_of(0x10, number % RIDERS))


def trick_name(number: int) -> str:
    """A name that no other trick has: a side, a move and a run of digits."""
    return f"{_SIDES[number % 8]} {_MOVES[number // 8 % 9]} {number}"


def _trick(number: int) -> Row:
    return {
        "_id": id_of(0x5A, number),
        "name": trick_name(number),
        "aliases": [f"trick {number}", f"{_MOVES[number % 9].lower()} no {number}"],
        "category": _CATEGORIES[number % 5],
        "difficulty": _LEVELS[number % 3],
        "url": trick_name(number).lower().replace(" ", "-"),
        "description": "Pop the tail, turn with the hips and look where you want to land. " * 4,
        "steps": ["Bend your knees.", "Jump.", "Land over the bolts."],
        "progression": {
            side: [{"trickId": id_of(0x5A, max(0, number + step)), "research": {"status": "published"}}]
            for side, step in (("prerequisites", -1), ("nextSteps", 1))
        },
    }


def _spot(number: int) -> Row:
    return {
        "_id": id_of(0x30, number),
        "name": f"Spot {number} Plaza",
        "description": "Ledges, a manual pad and a quiet corner. " * 4,
        "latitude": -60.0 + number % 1200 * 0.1,
        "longitude": -180.0 + number // 1200 * 4.3,
        "city": f"City {number % 997}",
        "state": f"State {number % STATES}",
        "tags": "ledge, rail, bowl",
        "sportTypes": [_CATEGORIES[number % 4].lower()],
        "rating": number % 50 / 10,
        "reviewCount": number % 7,
        "approvalStatus": "pending" if number % 10 == 0 else "approved",
        "userId": id_of(0x10, number % RIDERS),
    }


def _list(number: int) -> Row:
    return {
        "_id": id_of(0x73, number),
        "name": f"List {number}",
        "user": DBRef("users", rider(number)),
        "completed": 0,
        "tricks": [{"_id": id_of(0x74, number)}],
        "isPublic": True,
        "createdAt": _START + timedelta(minutes=number),
    }


def _listed(number: int) -> Row:
    return {
        "_id": id_of(0x74, number),
        "name": trick_name(number),
        "list_id": str(id_of(0x73, number)),
        "checked": "Completed" if number % 2 else "To Do",
        "createdAt": _START + timedelta(minutes=number),
    }


def _profile(number: int) -> Row:
    return {
        "_id": id_of(0x72, number),
        "userId": str(id_of(0x10, number)),
        "companionId": str(id_of(0x11, number % 3)),
        "memory": {"knownFacts": [f"Fact {number}"]},
    }


BUILDERS: Final[Mapping[str, Callable[[int], Row]]] = {
    "trickipedia": _trick,
    "spots": _spot,
    "tricklists": _list,
    "tricks": _listed,
    "companion_profiles": _profile,
}
"""A row of each collection by its number."""
