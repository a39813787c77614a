"""A provider's limit of tokens and requests in any span of seconds: the strictest kind, a sliding window."""

from collections import deque


class ProviderLimit:
    """Counts the tokens that were let through, and the calls that were not."""

    def __init__(self) -> None:
        self.accepted = self.refused = 0
        self._recent: deque[tuple[float, int]] = deque()

    def wait(self, size: int, now: float, *, tokens: int, requests: int, per: float) -> float:
        """Seconds after which a call of so many tokens is within the limits (0: none); counted when that is now."""
        while self._recent and self._recent[0][0] <= now - per:
            self._recent.popleft()
        kept, spent = len(self._recent), sum(count for _, count in self._recent)
        wait = 0.0
        for at, count in self._recent:  # as if the oldest had left, one after the other, until the call fits
            if not (requests and kept >= requests) and not (tokens and spent + size > tokens):
                break
            kept, spent, wait = kept - 1, spent - count, at + per - now
        if wait == 0.0:
            self._recent.append((now, size))
            self.accepted += size
        self.refused += wait > 0
        return wait
