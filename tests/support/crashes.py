"""A stage for crash tests: a database, a fake embedder, workers that die where they are told to, and the figures."""

import re
import signal
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pymongo.database import Database

from tests.support.figures import FIGURES
from tests.support.processes import PATIENCE, ROOT, Embedder, Worker, environment, eventually, worker

Store = Database[dict[str, Any]]
Record = Callable[[str, object], None]
"""Pytest's `record_property`: it reaches the summary from any process."""

CRASHING: Final = str(Path("tests") / "fault" / "crashing_main.py")
KEY: Final = "sk-or-canary-5e1f0c"


def settings(uri: str, name: str, fake: Embedder, **more: str) -> dict[str, str]:
    """Settings as in production, pointed at loopback."""
    return environment(
        ATLAS_URI=uri,
        ATLAS_DB=name,
        OPENROUTER_API_KEY=KEY,
        OPENROUTER_BASE_URL=fake.url,
        WORKER_COALESCE_MS="50",
        **more,
    )


def places_in_code() -> set[str]:
    """The names that the worker's own code passes to its probe."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "worker").rglob("*.py"))
    return {name for text in texts for name in re.findall(r'\.reached\(\s*"(\w+)"', text)}


def trick(name: str, says: str, **fields: object) -> dict[str, Any]:
    """A trick whose chunk says this."""
    return {"name": name, "category": "Skateboarding", "description": says, "url": name.lower(), **fields}


def texts(database: Store) -> dict[str, str]:
    """The text of each trick's chunk; fails when a title has two."""
    rows = list(database.knowledge_chunks.find({"source": "trickipedia"}, {"title": 1, "text": 1}))
    found = {row["title"]: row["text"] for row in rows}
    assert len(found) == len(rows), "two chunks of one trick"
    return found


def until_leading(running: Worker, *, beside_a_command: bool = False) -> None:
    """Wait until it is ready as leader; it must never have stood by, as if somebody else led.

    A command that waits for a leader takes the lease of one that died, and does its work itself: `beside_a_command` it
    may rightly stand by for as long.
    """

    def leads() -> bool:
        assert running.child.poll() is None, running.log.read_text()
        told = running.readiness()
        assert beside_a_command or told.get("role") != "standby", "a killed leader's lease was waited for"
        return bool(told.get("ready")) and told.get("role") == "leader"

    eventually(leads, "readiness as leader")


def until_killed(running: Worker, place: str) -> None:
    """Wait until it has died of SIGKILL at its place."""
    eventually(lambda: running.child.poll() is not None, f"its end at {place}")
    assert running.child.returncode == -signal.SIGKILL, (place, running.log.read_text())


@contextmanager
def doomed(
    folder: Path, env: Mapping[str, str], place: str, armed_by: Path | None = None, *, act: str = "kill", nth: int = 1
) -> Generator[Worker]:
    """A worker that does `act` at a place, the n-th time it is there while `armed_by` exists."""
    arming = () if armed_by is None else ("--armed-by", str(armed_by))
    options = ("--place", place, "--nth", str(nth), "--act", act, *arming)
    with worker(folder, env, *options, program=(CRASHING,)) as running:
        yield running


@dataclass(slots=True)
class Figures:
    """What a row of the matrix cost."""

    kills: int = 0
    reread: int = 0
    embedded_again: int = 0
    caught_up: list[float] = field(default_factory=list[float])

    def line(self, operation: str) -> str:
        """One line to print."""
        worst, total = max(self.caught_up, default=0.0), sum(self.caught_up)
        mean = total / len(self.caught_up) if self.caught_up else 0.0
        return (
            f"{operation:<9} kills {self.kills:>3}  restarts {len(self.caught_up):>3}  re-read {self.reread:>4}  "
            f"texts embedded again {self.embedded_again:>3}  caught up in {mean:.1f} s, at worst {worst:.1f} s"
        )


def timed(work: Callable[[], object]) -> float:
    """How many seconds it took."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def until_called(fake: Embedder, calls: int) -> None:
    """Wait until the embedder has been called more often than that."""
    eventually(lambda: fake.counters()["calls"] > calls, "a call of the embedder", PATIENCE)


def show(record: Record, line: str) -> None:
    """Have a line of figures printed at the end of the run, by whichever process the test runs in."""
    record(FIGURES, line)
