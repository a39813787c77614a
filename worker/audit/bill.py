"""What a plan costs: the fewest requests, and the time that the limits a minute make of it."""

from worker.audit.plan import Bill
from worker.embedding.lanes import Limits


def requests(bill: Bill, limits: Limits) -> int:
    """The fewest requests that hold these texts; how many it will be depends on how they meet on their way."""
    return max(-(-bill.embeddings // limits.texts), -(-bill.tokens // limits.tokens))


def seconds(bill: Bill, limits: Limits) -> float | None:
    """How long the limits a minute make it last; None where there are none."""
    minutes: list[float] = []
    if limits.tokens_per_minute is not None:
        minutes.append(bill.tokens / limits.tokens_per_minute)
    if limits.requests_per_minute is not None:
        minutes.append(requests(bill, limits) / limits.requests_per_minute)
    return 60.0 * max(minutes) if minutes else None
