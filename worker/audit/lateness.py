"""How far a running worker is behind: what `verify` says beside differences that may be on their way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from worker.ports import ChangeStream, Checkpoints

LATE: Final = 20
"""Seconds that the stored position of a worker in good health may be behind: it is stored each second, and a server at
rest moves its own time about every ten."""


@dataclass(frozen=True, slots=True)
class CatchingUp:
    """A leader that is behind: by how many seconds, and which of the sources it is still scanning."""

    leader: Mapping[str, object]
    behind: int
    scanning: tuple[str, ...]

    def as_row(self) -> dict[str, object]:
        """For JSON."""
        return {**self.leader, "behindSeconds": self.behind, "scanning": list(self.scanning)}

    def sentence(self) -> str:
        """For people."""
        scans = f" and scans {', '.join(self.scanning)}" if self.scanning else ""
        return (
            f"The worker that leads (pid {self.leader.get('pid')}) is catching up: its stored position is "
            f"{self.behind:,} s behind{scans}. What is on its way to it counts as a difference here; look again when "
            "`status` says that it has caught up."
        )


async def catching_up(
    leader: Mapping[str, object] | None, checkpoints: Checkpoints, stream: ChangeStream, sources: Sequence[str]
) -> CatchingUp | None:
    """How far the leader is behind; None where nobody leads or it has caught up. Raises Retryable."""
    if leader is None:
        return None
    checkpoint = await checkpoints.load()
    now = await stream.now()
    scans = await checkpoints.scans()
    behind = 0 if checkpoint is None else max(0, now.time - checkpoint.position.at.time)
    scanning = tuple(source for source in sources if source in scans and not scans[source].done)
    return CatchingUp(leader, behind, scanning) if scanning or behind >= LATE else None
