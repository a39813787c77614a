"""Split events: a server may tell a large event in fragments, each with a token of its own.

We ask for no splitting and project large events away; but a fragment that is taken for an event, or a stored token from
between two of them, would break the stream for ever. So fragments are put together here, and until the
last one is there the stream has not moved.
"""

from collections.abc import Mapping
from typing import Any

from worker.errors import HistoryLost, Malformed

Event = Mapping[str, Any]


class Fragments:
    """Puts the fragments of one opened stream together."""

    def __init__(self) -> None:
        self._parts: list[Event] = []
        self._began = False

    @property
    def open(self) -> bool:
        """Whether an event is told in part."""
        return bool(self._parts)

    def whole(self, event: Event | None) -> Event | None:
        """The event that is complete now, if any.

        Raises HistoryLost when the stream was opened inside an event, Malformed when a fragment is missing.
        """
        if event is None:
            return None
        began, self._began = self._began, True
        split = event.get("splitEvent")
        number, of = (1, 1) if split is None else (int(split["fragment"]), int(split["of"]))
        if number != len(self._parts) + 1:
            if not began:
                message = "the stored position is inside a split event, whose beginning cannot be had any more"
                raise HistoryLost(message)
            message = f"fragment {number} of a split event came where {len(self._parts) + 1} was due"
            raise Malformed(message)
        self._parts.append(event)
        if number < of:
            return None
        merged = {name: value for part in self._parts for name, value in part.items()}
        self._parts.clear()
        return merged
