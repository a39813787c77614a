"""The oracle of the tests with real processes: recompute everything from the sources, compare, ask until it agrees."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from brain.knowledge.settings import load
from tests.support.processes import PATIENCE, Worker, eventually
from worker.app import composed, connect, quiet_surroundings
from worker.audit.verify import KINDS
from worker.config import PREFIX, SOURCES, WorkerSettings
from worker.parts import App

CLEAN: Final = dict.fromkeys(KINDS, 0)
_AGAIN: Final = 0.05  # seconds between two audits; nothing is assumed to take this long


def rss_mb(pid: int) -> float:
    """The resident memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def frozen(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"


class Oracle:
    """The auditor of one database in this process, open for the time of a `with`."""

    def __init__(self, env: Mapping[str, str], sources: Sequence[str] = SOURCES) -> None:
        self._env = env
        self._sources = sources
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._app: App | None = None

    def __enter__(self) -> Self:
        self._app = self._runner.run(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    async def _open(self) -> App:
        settings = load(WorkerSettings, dict(self._env), PREFIX, embedded=False)
        connection = await self._stack.enter_async_context(connect(settings, embedded=False, data=Path()))
        return await self._stack.enter_async_context(composed(connection, quiet_surroundings(settings)))

    def differences(self) -> dict[str, int]:
        """What differs now, by kind."""
        return self._runner.run(self._audit())

    async def _audit(self) -> dict[str, int]:
        assert self._app is not None
        suspects = await self._app.auditor().audit(self._sources, lambda _source, _seen: None)
        counted = suspects.count()
        return {kind: counted[kind] for kind in KINDS}

    def until_clean(self, patience: float = PATIENCE) -> float:
        """Audit until nothing differs; how many seconds that took."""
        began = time.monotonic()
        while (found := self.differences()) != CLEAN:
            assert time.monotonic() - began < patience, f"it does not converge: {found}"
            time.sleep(_AGAIN)
        return time.monotonic() - began


def conserved(running: Worker) -> None:
    """Wait until every change that this worker was told has its outcome, and see that no source has more than came in.

    Promise: conservation. Beside the oracle it says that nothing is right by chance: nothing is left in hand.
    """

    def settled() -> bool:
        counts = [line for line in running.page("/metrics")[1].splitlines() if line.startswith("freshness_in_flight{")]
        left = [float(line.rpartition(" ")[2]) for line in counts]
        assert all(count >= 0 for count in left), counts
        return bool(left) and not any(left)

    eventually(settled, "an outcome for every change")
