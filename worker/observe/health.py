"""What /readyz answers from, kept by the pipeline and read by the status server's threads.

starting   not ready
standby    ready: it waits for the lease, and that is its work
leader     ready when every first scan is done, the stream answered and moved within 10 s, nothing is paused, and the
           oldest change without outcome has waited less than 30 s
"""

import logging
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from brain.knowledge.log import log
from worker.clock import Clock

Role = Literal["starting", "standby", "leader"]

_logger = logging.getLogger(__name__)

STREAM_SECONDS: Final = 10.0
WATERMARK_SECONDS: Final = 30.0
STUCK_SECONDS: Final = 60.0  # without a move, a pause or an error, only a restart helps
LONGEST_REASON: Final = 300  # characters


@dataclass(frozen=True, slots=True)
class Readiness:
    """The answer: `reasons` are sentences for people, empty when ready."""

    ready: bool
    role: Role
    reasons: tuple[str, ...]

    def as_row(self) -> dict[str, object]:
        """The body of /readyz."""
        return {"ready": self.ready, "role": self.role, "reasons": list(self.reasons)}


def _same(text: str) -> str:
    return text


class HealthBoard:
    """Implements `worker.ports.Health`; thread-safe. `redact` masks secrets in the details of pauses."""

    def __init__(self, clock: Clock, redact: Callable[[str], str] = _same) -> None:
        self._clock = clock
        self._redact = redact
        self._lock = threading.Lock()
        self._role: Role = "starting"
        self._paused: dict[str, str] = {}
        self._moved = clock.monotonic()
        self._behind = 0.0
        self._answered = False
        self._oldest: float | None = None
        self._progress = clock.monotonic()
        self._scans: tuple[str, ...] = ()
        self._told = False  # a start is not ready, and need not say so

    # --- worker.ports.Health ---

    def pause(self, reason: str, detail: str) -> None:
        """Something delays convergence; a new reason is logged, a repeated one only kept."""
        text = self._redact(detail)[:LONGEST_REASON]
        with self._lock:
            known = reason in self._paused
            self._paused[reason] = text
        if not known:
            log(_logger, logging.WARNING, "paused", f"{reason}: {text}", reason=reason)

    def resume(self, reason: str) -> None:
        """It is over; the clocks that ran meanwhile begin again."""
        with self._lock:
            known = self._paused.pop(reason, None) is not None
            if known:
                self._progress = self._clock.monotonic()
        if known:
            log(_logger, logging.INFO, "resumed", f"{reason} is over", reason=reason)

    def stream_moved(self, behind: float = 0.0) -> None:
        """The stream answered; its place is so many seconds behind the database's present."""
        with self._lock:
            self._moved = self._clock.monotonic()
            self._answered = True
            was, self._behind = self._behind, behind
        if behind >= WATERMARK_SECONDS > was:
            log(_logger, logging.WARNING, "behind", f"the stream is {behind:.0f} s behind the database", behind=behind)
        elif was >= WATERMARK_SECONDS > behind:
            log(_logger, logging.INFO, "caught_up", "the stream has caught up with the database")

    def watermark(self, oldest_open: float | None) -> None:
        """The monotonic time since when the oldest change without outcome waits; None: nothing waits."""
        with self._lock:
            if oldest_open is None or oldest_open != self._oldest:
                self._progress = self._clock.monotonic()
            self._oldest = oldest_open

    def advanced(self) -> None:
        """A change that still waits came on: a restart would throw that away."""
        with self._lock:
            self._progress = self._clock.monotonic()

    def role(self, role: Role) -> None:
        """What this process is now.

        A new leader has a full span of time for its first move, but is not ready before it: how far the stored position
        is behind shows with the stream's first answer.
        """
        with self._lock:
            if role != self._role:
                self._moved = self._progress = self._clock.monotonic()
                self._behind = 0.0
                self._answered = False
            self._role = role

    def scans_pending(self, sources: Sequence[str]) -> None:
        """Sources whose first scan is not done."""
        with self._lock:
            self._scans = tuple(sources)

    # --- readers ---

    def snapshot(self) -> Readiness:
        """Ready or not, and why not, as of now."""
        with self._lock:
            now = self._clock.monotonic()
            paused = [f"paused ({reason}): {detail}" for reason, detail in sorted(self._paused.items())]
            if self._role == "starting":
                return Readiness(ready=False, role=self._role, reasons=("the worker is starting", *paused))
            if self._role == "standby":
                return Readiness(ready=True, role=self._role, reasons=())
            reasons = [*self._late(now), *paused]
            return Readiness(ready=not reasons, role=self._role, reasons=tuple(reasons))

    def _late(self, now: float) -> list[str]:
        reasons: list[str] = []
        if self._scans:
            reasons.append(f"the first scan is not done: {', '.join(self._scans)}")
        silent = now - self._moved
        if not self._answered:
            reasons.append(f"the change stream has not answered yet ({silent:.0f} s)")
        elif silent >= STREAM_SECONDS:
            reasons.append(f"the change stream has not moved for {silent:.0f} s (limit {STREAM_SECONDS:.0f} s)")
        if self._behind >= WATERMARK_SECONDS:
            reasons.append(f"the change stream is {self._behind:.0f} s behind (limit {WATERMARK_SECONDS:.0f} s)")
        waits = 0.0 if self._oldest is None else now - self._oldest
        if waits >= WATERMARK_SECONDS:
            reasons.append(f"a change has waited {waits:.0f} s for its outcome (limit {WATERMARK_SECONDS:.0f} s)")
        return reasons

    def watermark_age(self) -> float:
        """Seconds up to which the chunks may be behind; NaN for a process that does not lead.

        When nothing waits it is the time since the stream last moved: idle streams move each second, dead ones age. One
        that works its way through a backlog is as old as the place it has come to.
        """
        with self._lock:
            if self._role != "leader":
                return math.nan
            now = self._clock.monotonic()
            since = self._moved if self._oldest is None else min(self._oldest, self._moved)
            return max(0.0, now - since, self._behind)

    def tell(self) -> None:
        """Log once when the process becomes ready, and once when it no longer is, with the reasons (promise: loud)."""
        now = self.snapshot()
        with self._lock:
            was, self._told = self._told, now.ready
        if now.ready == was:
            return
        if now.ready:
            log(_logger, logging.INFO, "ready", f"ready, as {now.role}", role=now.role)
        else:
            log(_logger, logging.WARNING, "not_ready", f"not ready: {'; '.join(now.reasons)}", role=now.role)

    def leads(self) -> bool:
        """Whether this process is the leader."""
        with self._lock:
            return self._role == "leader"

    def moving(self) -> bool:
        """Whether a restart would be wrong: the pipeline moves, or says itself why it waits (for the watchdog).

        False for a leader that is not paused, and for `STUCK_SECONDS` has not moved the stream or has not come on with
        any of its waiting work.
        """
        with self._lock:
            if self._role != "leader" or self._paused:
                return True
            now = self._clock.monotonic()
            stuck = self._oldest is not None and now - self._progress >= STUCK_SECONDS
            return now - self._moved < STUCK_SECONDS and not stuck


async def announce(board: HealthBoard, clock: Clock) -> None:
    """Log every change of readiness within a second, for ever."""
    while True:
        board.tell()
        await clock.sleep(1.0)


class Heartbeat:
    """The event loop's pulse: the loop beats, the status server's threads ask how long ago."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._at = clock.monotonic()

    def beat(self) -> None:
        """The loop runs."""
        self._at = self._clock.monotonic()

    def silence(self) -> float:
        """Seconds since the last beat."""
        return self._clock.monotonic() - self._at
