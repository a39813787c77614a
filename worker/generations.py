"""Generations: the chunk collections that are kept fresh, one embedding model each, and what may be done with them.

    active     searched
    next       built beside it, not searched yet (or again, after a rollback)
    previous   searched before the switch, kept fresh so that a rollback is right

At most two exist, by the shape of the value, and it is one row of the database: every change of it is one write.

    build            switch              rollback            drop
    A ──▶ A + next B ──▶ B + previous A ──▶ A + next B ──▶ A, and B's collection leaves

A leader runs with the generations that it began with; when they change it drains and begins again. Every change is
made under the lease, so nobody publishes into one generation alone. Pure: the row is kept by `worker.mongo.pins`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, cast

from brain.knowledge.pin import FIRST_COLLECTION, FIRST_INDEX, Model, Pin
from worker.errors import PinRefused

Role = Literal["next", "previous"]
Act = Literal["build", "switch", "rollback", "drop"]
_ACTS: Final[Mapping[object, Act]] = {"build": "build", "switch": "switch", "rollback": "rollback", "drop": "drop"}

_LONGEST_SLUG: Final = 60  # characters; MongoDB allows 255 bytes for database and collection together


@dataclass(frozen=True, slots=True)
class Generations:
    """The generations that live now. `leaving` names collections that were dropped by word and are to be removed.

    `turn` counts the changes, so that one which was asked for and left lying is not made after others.
    """

    active: Pin
    beside: Pin | None = None
    role: Role | None = None
    leaving: tuple[str, ...] = ()
    turn: int = 0

    @property
    def live(self) -> tuple[Pin, ...]:
        """Every generation that is kept fresh, the active one first."""
        return (self.active,) if self.beside is None else (self.active, self.beside)

    def named(self, collection: str) -> Pin | None:
        """The living generation of this collection."""
        return next((pin for pin in self.live if pin.collection == collection), None)


def new_pin(model: Model, now: datetime) -> Pin:
    """The pin of a generation that begins now; its collection never had that name before, nor will have it again.

    So whoever remembers a name (a scan's shape, a reader's loaded vectors) never takes a new generation for an old one.
    """
    slug = re.sub(r"[^a-z0-9.-]+", "-", model.name.rpartition("/")[2].lower())[:_LONGEST_SLUG]
    name = f"{slug}-{model.dimensions}_{int(now.timestamp() * 1000):x}"
    return Pin(model.name, model.dimensions, f"{FIRST_COLLECTION}_{name}", f"{FIRST_INDEX}_{name}")


def changed(now: Generations, act: Act, pin: Pin, turn: int | None = None) -> Generations:
    """The generations after this act on that one; the same again when it was done before (an answer may be lost).

    Raises PinRefused, with words for people, when it may not be done, and when it was asked for at another turn.
    """
    match act:
        case "build":
            after = _built(now, pin)
        case "switch":
            after = _swapped(now, pin, wanted="next")
        case "rollback":
            after = _swapped(now, pin, wanted="previous")
        case "drop":
            after = _dropped(now, pin)
    if after == now:
        return now
    if turn not in {None, now.turn}:
        message = "the generations have changed since that was asked for: look at `pin status`, and ask again"
        raise PinRefused(message)
    return replace(after, turn=now.turn + 1)


def order(act: Act, pin: Pin, turn: int) -> dict[str, object]:
    """An act as the arguments of a request, asked for at that turn."""
    return {"act": act, "pin": pin.as_row(), "turn": turn}


def ordered(arguments: Mapping[str, object]) -> tuple[Act, Pin, int]:
    """What `order` wrote; raises PinRefused for anything else."""
    act, pin, turn = arguments.get("act"), pin_of(arguments), arguments.get("turn")
    known = _ACTS.get(act) if isinstance(act, str) else None
    if known is None or pin is None or not isinstance(turn, int):
        message = "this is no act on a generation: the command is of another version than this worker"
        raise PinRefused(message)
    return known, pin, turn


def pin_of(arguments: Mapping[str, object]) -> Pin | None:
    """The pin that the arguments of a request name; None where they name none."""
    row = arguments.get("pin")
    try:
        return Pin.from_row(cast("Mapping[str, object]", row)) if isinstance(row, dict) else None
    except (KeyError, ValueError):
        return None


def _built(now: Generations, pin: Pin) -> Generations:
    if pin in now.live:
        return now
    if now.beside is not None:
        message = (
            f"two generations exist already, {_words(now.active)} and {_words(now.beside)}: finish with the second one "
            "(`pin switch`), or remove it (`pin drop`)"
        )
        raise PinRefused(message)
    return replace(now, beside=pin, role="next")


def _swapped(now: Generations, pin: Pin, wanted: Role) -> Generations:
    if pin == now.active:
        return now
    if pin != now.beside or now.role != wanted:
        message = (
            "there is no generation to switch to: `pin build --model M` makes one"
            if wanted == "next"
            else "there is no previous generation to roll back to"
        )
        raise PinRefused(message)
    return replace(now, active=pin, beside=now.active, role="previous" if wanted == "next" else "next")


def _dropped(now: Generations, pin: Pin) -> Generations:
    if pin == now.active:
        message = f"{_words(pin)} is the active generation, which is searched: it cannot be dropped"
        raise PinRefused(message)
    if pin != now.beside:
        return now
    return replace(now, beside=None, role=None, leaving=(*now.leaving, pin.collection))


def _words(pin: Pin) -> str:
    return f"{pin.model} ({pin.dimensions}) in {pin.collection}"
