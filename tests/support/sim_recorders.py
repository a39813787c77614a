"""What the simulated worker says of itself: figures, readiness and places reached."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from tests.support.sim_weather import Weather
from worker.model import Outcome


class SimMeter:
    """Implements Meter; keeps the two sides of conservation and the canary's seconds, and ignores the rest."""

    def __init__(self) -> None:
        self.came_in = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.actions: Counter[str] = Counter()
        self.searchable_lags: list[float] = []

    def received(self, source: str) -> None:
        """Count."""
        self.came_in += 1

    def settled(self, source: str, outcome: Outcome, lag: float | None) -> None:
        """Count."""
        self.outcomes[outcome] += 1

    def chunks(self, action: Literal["written", "rewritten", "removed", "kept"], count: int) -> None:
        """Count."""
        self.actions[action] += count

    def embedded(self, outcome: str, *, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """Ignored."""

    def budget_left(self, read: Callable[[], float]) -> None:
        """Ignored."""

    def queued(self, step: str, depth: int) -> None:
        """Ignored."""

    def reopened(self, reason: str) -> None:
        """Ignored."""

    def ignored(self, operation: str) -> None:
        """Ignored."""

    def resynced(self, reason: str) -> None:
        """Ignored."""

    def headroom(self, seconds: float) -> None:
        """Ignored."""

    def buried(self, letters: int) -> None:
        """Ignored."""

    def odd(self, source: str, oddity: str) -> None:
        """Ignored."""

    def searchable(self, lag: float) -> None:
        """Keep."""
        self.searchable_lags.append(lag)


class SimHealth:
    """Implements Health; keeps the reasons that are raised now."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self.pending: Sequence[str] = ()
        self.advances = 0

    def pause(self, reason: str, detail: str) -> None:
        """Raise."""
        self.reasons[reason] = detail

    def resume(self, reason: str) -> None:
        """Lower."""
        self.reasons.pop(reason, None)

    def stream_moved(self, behind: float = 0.0) -> None:
        """Ignored."""

    def watermark(self, oldest_open: float | None) -> None:
        """Ignored."""

    def advanced(self) -> None:
        """Count."""
        self.advances += 1

    def role(self, role: Literal["starting", "standby", "leader"]) -> None:
        """Ignored."""

    def scans_pending(self, sources: Sequence[str]) -> None:
        """Keep."""
        self.pending = sources


class CrashingProbe:
    """Implements Probe: now and then the process dies where it is; who reaches the place then waits for its end."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self.dead = asyncio.Event()
        self.reached_points: Counter[str] = Counter()

    async def reached(self, point: str) -> None:
        """Die here, perhaps."""
        self.reached_points[point] += 1
        if self._weather.strikes(self._weather.rates.crash):
            self.dead.set()
            await asyncio.Event().wait()
