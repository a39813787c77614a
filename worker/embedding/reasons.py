"""The reasons for which one provider's gate holds readiness back: what it raised, it alone takes back, at its end too.

Two generations may be embedded by two providers: that one answers says nothing of the other, and a gate that is closed,
since its generation was dropped, must not leave the worker unready for ever.
"""

from collections.abc import Sequence
from typing import Literal

from worker.ports import Health


class OwnReasons:
    """Implements `worker.ports.Health` over the board of the process."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._raised: set[str] = set()

    def pause(self, reason: str, detail: str) -> None:
        """Something delays convergence."""
        self._raised.add(reason)
        self._health.pause(reason, detail)

    def resume(self, reason: str) -> None:
        """It is over, if it was raised here."""
        if reason in self._raised:
            self._raised.discard(reason)
            self._health.resume(reason)

    def close(self) -> None:
        """Nobody asks there any more."""
        for reason in sorted(self._raised):
            self.resume(reason)

    def stream_moved(self, behind: float = 0.0) -> None:
        """As it is told."""
        self._health.stream_moved(behind)

    def watermark(self, oldest_open: float | None) -> None:
        """As it is told."""
        self._health.watermark(oldest_open)

    def advanced(self) -> None:
        """As it is told."""
        self._health.advanced()

    def role(self, role: Literal["starting", "standby", "leader"]) -> None:
        """As it is told."""
        self._health.role(role)

    def scans_pending(self, sources: Sequence[str]) -> None:
        """As it is told."""
        self._health.scans_pending(sources)
