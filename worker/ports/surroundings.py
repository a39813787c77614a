"""What a step leans on: the embedder, counters, health, and the places where tests stand."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from brain.knowledge.chunk import Vector
from worker.errors import Poison
from worker.model import (
    Outcome,
)


class TextEmbedder(Protocol):
    """Texts to vectors, with every limit, retry and pause inside: it waits through an outage instead of failing."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector | Poison]:
        """A vector for each text, or why that text can never have one. Raises Fatal only."""
        ...


class Meter(Protocol):
    """Counters for Prometheus; no argument comes from document data except a configured source name."""

    def received(self, source: str) -> None:
        """A change came in."""
        ...

    def settled(self, source: str, outcome: Outcome, lag: float | None) -> None:
        """A change has its outcome; `lag` in seconds from commit to stored, where the commit time is known."""
        ...

    def chunks(self, action: Literal["written", "rewritten", "removed", "kept"], count: int) -> None:
        """Chunk rows by what was done with them."""
        ...

    def embedded(self, outcome: str, *, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """One embedding request ended."""
        ...

    def budget_left(self, read: Callable[[], float]) -> None:
        """Where the dollars that may still be spent today are read from; without a budget nobody calls this."""
        ...

    def queued(self, step: str, depth: int) -> None:
        """How many changes wait before or in a step."""
        ...

    def reopened(self, reason: str) -> None:
        """The stream was opened again."""
        ...

    def ignored(self, operation: str) -> None:
        """The stream told of an operation of no consequence, or of an unknown one."""
        ...

    def resynced(self, reason: str) -> None:
        """A scan of a source began."""
        ...

    def headroom(self, seconds: float) -> None:
        """How far the stored position is from the oldest entry of the history; NaN where that is unknown."""
        ...

    def buried(self, letters: int) -> None:
        """How many documents are dead-lettered now."""
        ...

    def odd(self, source: str, oddity: str) -> None:
        """A document held an odd value that was made sensible or left out."""
        ...

    def searchable(self, lag: float) -> None:
        """The search index found a chunk so many seconds after it was stored."""
        ...


class Health(Protocol):
    """What /readyz answers from. A reason is a short word; the same reason may be raised again."""

    def pause(self, reason: str, detail: str) -> None:
        """Something delays convergence."""
        ...

    def resume(self, reason: str) -> None:
        """It is over."""
        ...

    def stream_moved(self, behind: float = 0.0) -> None:
        """The stream answered; its place is so many seconds behind the database's present."""
        ...

    def watermark(self, oldest_open: float | None) -> None:
        """The monotonic time since when the oldest change without outcome waits; None: nothing waits."""
        ...

    def advanced(self) -> None:
        """Something was done for a change that still waits, as when some of a long document's texts are embedded."""
        ...

    def role(self, role: Literal["starting", "standby", "leader"]) -> None:
        """What this process is now."""
        ...

    def scans_pending(self, sources: Sequence[str]) -> None:
        """Sources whose first scan is not done."""
        ...


class Probe(Protocol):
    """Named places on the way of a change; production does nothing there, tests wait, pause or die there."""

    async def reached(self, point: str) -> None:
        """The pipeline is at this place now."""
        ...
