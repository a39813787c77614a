"""What a plan costs: the fewest requests, and the time that the limits make of it."""

from typing import Final

from worker.audit.plan import Bill
from worker.embedding.lanes import Limits

REQUEST_SECONDS: Final = 1.0
"""A guess at how long a hosted endpoint takes for a full request: all there is to go by without limits a minute."""


def requests(bill: Bill, limits: Limits) -> int:
    """The fewest requests that hold these texts; how many it will be depends on how they meet on their way."""
    return max(-(-bill.embeddings // limits.texts), -(-bill.tokens // limits.tokens))


def limited(limits: Limits) -> bool:
    """Whether a limit a minute is set."""
    return limits.tokens_per_minute is not None or limits.requests_per_minute is not None


def seconds(bill: Bill, limits: Limits) -> float:
    """How long it takes at these limits: those a minute, and as many requests at once as may be."""
    rounds = -(-requests(bill, limits) // limits.concurrency)
    minutes = 0.0
    if limits.tokens_per_minute is not None:
        minutes = bill.tokens / limits.tokens_per_minute
    if limits.requests_per_minute is not None:
        minutes = max(minutes, requests(bill, limits) / limits.requests_per_minute)
    return max(60.0 * minutes, rounds * REQUEST_SECONDS)
