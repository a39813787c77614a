"""docs-sync against a real server, over both drivers."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pymongo.asynchronous.database import AsyncDatabase

from tests.contract.test_checkpoints import successor
from worker.docs_sync import SyncOptions, sync
from worker.errors import FencedOff
from worker.mongo.docs import BATCH, MongoDocs
from worker.mongo.driver import Database

NOW = datetime(2026, 11, 30, tzinfo=UTC)
ALL = SyncOptions(allow=("**",), prune=True)


async def test_pages_come_change_and_go(
    database: Database, backend: AsyncDatabase[dict[str, Any]], tmp_path: Path
) -> None:
    """More pages than one batch; the second run changes nothing, the third what differs."""
    for number in range(BATCH + 20):
        (tmp_path / f"{number}.md").write_text(f"---\ndate: 2026-01-02\n---\n# Page {number}", "utf-8")
    docs = MongoDocs(database)
    assert len((await sync(tmp_path, docs, ALL, NOW)).added) == BATCH + 20
    row = await backend["docs"].find_one({"_id": "docs/7.md"})
    assert row is not None
    assert (row["site"], row["path"], row["title"], row["url"]) == ("docs", "7.md", "Page 7", "/docs/7")
    assert (row["frontMatter"], row["updatedAt"]) == ({"date": "2026-01-02"}, NOW)
    again = await sync(tmp_path, docs, ALL, NOW)
    assert (again.kept, again.added, again.changed) == (BATCH + 20, (), ())
    (tmp_path / "7.md").write_text("# New", "utf-8")
    (tmp_path / "8.md").unlink()
    third = await sync(tmp_path, docs, ALL, NOW)
    assert (third.changed, third.removed) == (("7.md",), ("8.md",))
    assert await backend["docs"].count_documents({}) == BATCH + 19


async def test_a_row_written_by_hand_is_taken_over(
    database: Database, backend: AsyncDatabase[dict[str, Any]], tmp_path: Path
) -> None:
    """By site and path; rows of other sites and rows without a site stay as they are."""
    await backend["docs"].insert_many(
        [
            {"_id": 1, "site": "docs", "path": "a.md"},
            {"_id": 2, "markdown": "by hand"},
            {"_id": 3, "site": "x", "path": "b"},
        ]
    )
    (tmp_path / "a.md").write_text("# A", "utf-8")
    report = await sync(tmp_path, MongoDocs(database), ALL, NOW)
    assert (report.changed, report.removed) == (("a.md",), ())
    rows = {row["_id"]: row async for row in backend["docs"].find()}
    assert set(rows) == {1, 2, 3}
    assert rows[1]["title"] == "A"


async def test_a_former_leader_writes_no_page(
    database: Database, backend: AsyncDatabase[dict[str, Any]], tmp_path: Path
) -> None:
    """The pages that a worker keeps by its clock are under its lease; those of a command are not."""
    (tmp_path / "a.md").write_text("# A", "utf-8")
    former, leader = await successor(database)
    with pytest.raises(FencedOff):
        await sync(tmp_path, MongoDocs(database, former), ALL, NOW)
    assert await backend["docs"].find_one() is None
    assert (await sync(tmp_path, MongoDocs(database, leader), ALL, NOW)).added == ("a.md",)
    (tmp_path / "a.md").write_text("# B", "utf-8")
    assert (await sync(tmp_path, MongoDocs(database), ALL, NOW)).changed == ("a.md",)
