"""docs-sync by the clock: what the settings ask for, and that no trouble with the folder ends it."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brain.knowledge.settings import load
from worker.config import PREFIX, WorkerSettings, warnings
from worker.docs_sync import SyncOptions, SyncPlan
from worker.docs_sync.schedule import Schedule, keep_docs
from worker.errors import ConfigurationFault, Unreachable

GOOD = {"ATLAS_URI": "mongodb://db.example", "OPENROUTER_API_KEY": "k"}
NOW = datetime(2026, 11, 30, tzinfo=UTC)


class Ended(Exception):
    """The test has seen enough."""


class Visits:
    """A clock whose every sleep is a step of the test: it runs the next act, and ends after the last."""

    def __init__(self, *acts: object) -> None:
        self._acts = list(acts)
        self.slept: list[float] = []

    def now(self) -> datetime:
        """Always the same."""
        return NOW

    def monotonic(self) -> float:
        """Never asked."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Act instead of waiting."""
        self.slept.append(seconds)
        await asyncio.sleep(0)
        if not self._acts:
            raise Ended
        act = self._acts.pop(0)
        assert callable(act)
        act()


class Rows:
    """The docs collection in memory; `fault` is raised by the next read."""

    def __init__(self) -> None:
        self.hashes: dict[str, str] = {}
        self.writes = 0
        self.fault: Exception | None = None

    async def stored(self, site: str) -> Mapping[str, str]:
        """Hashes by path."""
        assert site == "guide"
        if self.fault:
            fault, self.fault = self.fault, None
            raise fault
        return dict(self.hashes)

    async def apply(self, plan: SyncPlan, now: datetime) -> None:
        """Write the plan."""
        assert now == NOW
        self.writes += 1
        self.hashes |= {page.path: page.hash for page in (*plan.add, *plan.change)}
        for path in plan.remove:
            del self.hashes[path]


async def keep(root: Path, rows: Rows, *acts: object) -> Visits:
    """One look, then a look after each act."""
    visits = Visits(*acts)
    with pytest.raises(Ended):
        await keep_docs(Schedule(root, SyncOptions("guide", allow=("**",), prune=True), 60.0), rows, visits)
    return visits


async def test_changes_are_followed_and_nothing_is_written_twice(tmp_path: Path) -> None:
    """Add, change, remove between looks; a look that finds nothing new writes nothing."""
    rows = Rows()
    for name in "abcd":
        (tmp_path / f"{name}.md").write_text("one")
    visits = await keep(
        tmp_path, rows, lambda: None, lambda: (tmp_path / "a.md").write_text("two"), (tmp_path / "b.md").unlink
    )
    assert (sorted(rows.hashes), rows.writes, visits.slept) == (["a.md", "c.md", "d.md"], 3, [60.0] * 4)


async def test_trouble_is_told_and_outlived(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No folder yet, a database that does not answer, a broken page, an empty tree: said, nothing removed, going on."""
    caplog.set_level(logging.INFO)
    rows, root = Rows(), tmp_path / "docs"

    def bring() -> None:
        root.mkdir()
        for name in "abcdef":
            (root / f"{name}.md").write_text(name)

    def lose() -> None:
        rows.fault = Unreachable("nobody answers")

    def spoil() -> None:
        (root / "a.md").write_bytes(b"\xff")

    def empty() -> None:
        for file in root.iterdir():
            file.unlink()

    await keep(root, rows, bring, lose, spoil, empty)
    assert len(rows.hashes) == 6
    told = "\n".join(record.getMessage() for record in caplog.records)
    for words in ("this is no folder", "6 added", "nobody answers", "a.md", "nothing was removed"):
        assert words in told


def test_the_settings_ask_for_it(tmp_path: Path) -> None:
    """Off without a folder; with one, its site, base url and minutes; the allow-list is required."""
    assert Schedule.of(load(WorkerSettings, GOOD, PREFIX)) is None
    asked = {**GOOD, "WORKER_DOCS_PATH": str(tmp_path), "WORKER_DOCS_ALLOW": "guide/**"}
    settings = load(WorkerSettings, asked, PREFIX)
    assert Schedule.of(settings) == Schedule(
        tmp_path, SyncOptions("docs", "/docs", ("guide/**",), prune=True), every=600.0
    )
    more = {"WORKER_DOCS_SITE": "help", "WORKER_DOCS_BASE_URL": "/", "WORKER_DOCS_MINUTES": "0.5"}
    assert Schedule.of(load(WorkerSettings, asked | more, PREFIX)) == Schedule(
        tmp_path, SyncOptions("help", "/", ("guide/**",), prune=True), every=30.0
    )
    with pytest.raises(ConfigurationFault, match="WORKER_DOCS_ALLOW is not: name the pages"):
        load(WorkerSettings, {**GOOD, "WORKER_DOCS_PATH": str(tmp_path)}, PREFIX)


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    """Names, not values, for each of them."""
    wrong = {
        "WORKER_DOCS_PATH": "a\nb",
        "WORKER_DOCS_ALLOW": "../secrets/**",
        "WORKER_DOCS_SITE": "a/b",
        "WORKER_DOCS_BASE_URL": "docs",
        "WORKER_DOCS_MINUTES": "0",
        "WORKER_DOCS_EVERY": "5",
    }
    with pytest.raises(ConfigurationFault) as found:
        load(WorkerSettings, GOOD | wrong, PREFIX)
    assert all(name in str(found.value.mistakes) for name in wrong)


def test_what_is_probably_not_meant_is_a_warning(tmp_path: Path) -> None:
    """A folder that is not there yet, a source that is left out, settings without a folder."""
    asked = {**GOOD, "WORKER_DOCS_PATH": str(tmp_path / "later"), "WORKER_DOCS_ALLOW": "**", "WORKER_SOURCES": "spots"}
    said = warnings(load(WorkerSettings, asked, PREFIX), asked)
    assert ["is no folder" in said[0], "WORKER_SOURCES" in said[1], len(said)] == [True, True, 2]
    lonely = {**GOOD, "WORKER_DOCS_MINUTES": "5"}
    assert "does nothing without" in "".join(warnings(load(WorkerSettings, lonely, PREFIX), lonely))
