"""The contiguous low-watermark: the furthest position before which everything has a durable outcome.

Work is done out of order; only an unbroken prefix may be checkpointed (promise: checkpoint honesty). The same class
serves the stream (positions are resume tokens) and a scan (positions are document ids).

    low ─▶ [open] ─ [done, done, done] ─ [open] ─ [done]         one entry an open position, one a run of done ones

So what it holds is bounded by what is open, however long one position is stuck and however much is done behind it.
"""

from typing import Generic, TypeVar

P = TypeVar("P")


class Ticket(Generic[P]):
    """One position that waits for its outcome, held by whoever owes it; done, it stands for all done ones before it."""

    __slots__ = ("after", "before", "count", "done", "position", "since")

    def __init__(self, position: P, since: float, count: int) -> None:
        self.position = position
        self.since = since
        self.count = count
        self.done = False
        self.before: Ticket[P] | None = None
        self.after: Ticket[P] | None = None


class Watermark(Generic[P]):
    """Positions in their order, closed in any order."""

    def __init__(self, low: P | None = None) -> None:
        self._low = low
        self._first: Ticket[P] | None = None
        self._last: Ticket[P] | None = None
        self._waiting = 0
        self._ahead = 0

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
        """How many positions that were opened stand beyond the low one, with or without outcome."""
        return self._ahead

    @property
    def oldest(self) -> float | None:
        """The monotonic time at which the oldest position without outcome came in."""
        return None if self._first is None else self._first.since

    def open(self, position: P, since: float) -> Ticket[P]:
        """Take in a position that comes after all others; `since` is monotonic, in seconds."""
        ticket = Ticket(position, since, 1)
        self._append(ticket)
        self._waiting += 1
        self._ahead += 1
        return ticket

    def close(self, ticket: Ticket[P]) -> None:
        """Its outcome is durable. Closing twice is a bug and raises ValueError."""
        if ticket.done:
            message = "a ticket was closed twice"
            raise ValueError(message)
        ticket.done = True
        self._waiting -= 1
        self._settle(ticket)

    def skip(self, position: P, since: float) -> None:
        """Take in a position that owes nothing (an idle step): it counts once everything before it is done."""
        ticket = Ticket(position, since, 0)
        ticket.done = True
        self._append(ticket)
        self._settle(ticket)

    def _settle(self, ticket: Ticket[P]) -> None:
        """A ticket is done: it becomes one with its done neighbours, the last of which speaks for all."""
        after, before = ticket.after, ticket.before
        if after is not None and after.done:
            after.count += ticket.count
            self._remove(ticket)
            ticket = after
        if before is not None and before.done:
            ticket.count += before.count
            self._remove(before)
        if ticket is self._first:
            self._low = ticket.position
            self._ahead -= ticket.count
            self._remove(ticket)

    def _append(self, ticket: Ticket[P]) -> None:
        ticket.before = self._last
        if self._last is None:
            self._first = ticket
        else:
            self._last.after = ticket
        self._last = ticket

    def _remove(self, ticket: Ticket[P]) -> None:
        if ticket.before is None:
            self._first = ticket.after
        else:
            ticket.before.after = ticket.after
        if ticket.after is None:
            self._last = ticket.before
        else:
            ticket.after.before = ticket.before
