"""The contiguous low-watermark: the furthest position before which everything has a durable outcome.

Work is done out of order; only an unbroken prefix may be checkpointed (promise: checkpoint honesty). The same class
serves the stream (positions are resume tokens) and a scan (positions are document ids).
"""

from collections import deque
from typing import Generic, TypeVar

P = TypeVar("P")


class Ticket(Generic[P]):
    """One position that waits for its outcome; held by whoever owes it."""

    __slots__ = ("done", "position", "since")

    def __init__(self, position: P, since: float) -> None:
        self.position = position
        self.since = since
        self.done = False


class Watermark(Generic[P]):
    """Positions in their order, closed in any order."""

    def __init__(self, low: P | None = None) -> None:
        self._low = low
        self._tickets: deque[Ticket[P]] = deque()
        self._waiting = 0

    @property
    def low(self) -> P | None:
        """Everything up to here is durable; None before the first."""
        return self._low

    @property
    def waiting(self) -> int:
        """How many positions have no outcome yet."""
        return self._waiting

    @property
    def ahead(self) -> int:
        """How many positions stand beyond the low one, with or without outcome."""
        return len(self._tickets)

    @property
    def oldest(self) -> float | None:
        """The monotonic time at which the oldest position without outcome came in."""
        return next((ticket.since for ticket in self._tickets if not ticket.done), None)

    def open(self, position: P, since: float) -> Ticket[P]:
        """Take in a position that comes after all others; `since` is monotonic, in seconds."""
        ticket = Ticket(position, since)
        self._tickets.append(ticket)
        self._waiting += 1
        return ticket

    def close(self, ticket: Ticket[P]) -> None:
        """Its outcome is durable. Closing twice is a bug and raises ValueError."""
        if ticket.done:
            message = "a ticket was closed twice"
            raise ValueError(message)
        ticket.done = True
        self._waiting -= 1
        self._advance()

    def skip(self, position: P, since: float) -> None:
        """Take in a position that owes nothing (an idle step): it counts once everything before it is done."""
        if self._tickets and self._tickets[-1].done:
            self._tickets[-1].position = position  # steps in a row need one entry, so idling stays bounded
        else:
            ticket = Ticket(position, since)
            ticket.done = True
            self._tickets.append(ticket)
        self._advance()

    def _advance(self) -> None:
        while self._tickets and self._tickets[0].done:
            self._low = self._tickets.popleft().position
