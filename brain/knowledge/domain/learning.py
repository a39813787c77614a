"""In which order to learn what a trick needs: prerequisites first."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

MOST_DEPTH: Final = 4
"""How far prerequisites of prerequisites are followed: as deep as the backend's own paths go."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Step(Generic[K]):
    """One trick of the way; `depth` is its least distance from the goal, which itself has 0."""

    trick: K
    depth: int


def steps_to(goal: K, needs: Mapping[K, Sequence[K]], most_depth: int = MOST_DEPTH) -> list[Step[K]]:
    """The tricks to learn on the way to one, it itself last, each once, at most `most_depth` away from it.

    `needs` names each trick's prerequisites; a trick that is no key of it does not exist and is passed over. What a
    trick needs comes before it, in the order of `needs`. The editors' rules forbid circles, the data may hold one all
    the same: it is cut where it would close.
    """
    depths = _depths(goal, needs, most_depth)
    order: list[Step[K]] = []
    seen = {goal}
    path = [(goal, iter(needs.get(goal, ())))]
    while path:
        trick, rest = path[-1]
        following = next((one for one in rest if one in depths and one not in seen), None)
        if following is None:
            order.append(Step(trick, depths[trick]))
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(needs[following])))
    return order


def _depths(goal: K, needs: Mapping[K, Sequence[K]], most_depth: int) -> dict[K, int]:
    """The least distance of every trick that exists within reach."""
    depths = {goal: 0}
    front = [goal]
    for depth in range(1, most_depth + 1):
        front = list(dict.fromkeys(one for trick in front for one in needs.get(trick, ()) if one in needs))
        front = [one for one in front if one not in depths]
        depths.update(dict.fromkeys(front, depth))
    return depths
