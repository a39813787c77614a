"""A trick's neighbours in the progression: what to learn before it and after it.

Only edges that may be shown are read here (`visibility.edge_is_public`), so that nobody shows another by mistake.
"""

from dataclasses import dataclass
from typing import Final, Literal

from bson import ObjectId

from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import document_id
from brain.knowledge.domain.visibility import edge_is_public

MOST_EDGES: Final = 40
"""Neighbours that are named in each list."""
_LAST: Final = 1e9

Direction = Literal["prerequisites", "nextSteps"]


@dataclass(frozen=True, slots=True)
class Edge:
    """A shown edge: the id of the trick it points at, and why."""

    target: ObjectId | str
    strength: str
    reason: str
    order: float


def edges(fields: Fields, direction: Direction) -> list[Edge]:
    """The shown edges of one list by their `order`, each target once, the trick itself never."""
    own = document_id(fields.raw("_id"))
    found: dict[ObjectId | str, Edge] = {}
    for edge in fields.child("progression").children(direction):
        if not edge_is_public(edge):
            continue
        target = document_id(edge.raw("trickId"))
        if target is None:
            fields.note("bad_edge")
        elif target != own:
            order = edge.raw("order")
            place = float(order) if isinstance(order, int | float) and abs(order) < _LAST else _LAST
            found.setdefault(target, Edge(target, edge.line("strength"), edge.line("reason"), place))
    if len(found) > MOST_EDGES:
        fields.note("too_many_edges")
    return sorted(found.values(), key=lambda edge: edge.order)[:MOST_EDGES]
