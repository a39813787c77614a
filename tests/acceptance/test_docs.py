"""Documentation through real processes: the worker's own schedule, the command beside it, two sites, real folders."""

from pathlib import Path
from typing import Any

from pymongo.database import Database

from tests.support.processes import Embedder, command, eventually, worker

LONG = "Many words make this section long enough to stand alone. " * 12


def _pages(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n\nAll about {name}.\n", "utf-8")


def test_the_worker_follows_its_folder(
    tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]], fake: Embedder
) -> None:
    """The folder comes after the start; pages appear, change and go by themselves; a lost tree removes nothing."""
    root = tmp_path / "release" / "docs"
    asked = {"WORKER_DOCS_PATH": str(root), "WORKER_DOCS_ALLOW": "guide/**", "WORKER_DOCS_MINUTES": "0.01"}

    def texts() -> str:
        return "\n".join(row["text"] for row in database.knowledge_chunks.find({"docType": "doc"}))

    with worker(tmp_path, env | asked) as running:
        running.until_ready()
        assert any("WORKER_DOCS_PATH" in str(line) for line in running.lines())
        _pages(root, *(f"guide/{number}-page.md" for number in range(8)), "security/keys.md")
        eventually(lambda: texts().count("All about") == 8, "eight pages")
        assert "keys" not in texts()
        (root / "guide" / "0-page.md").write_text("# Zero\n\nSomething new.\n", "utf-8")
        (root / "guide" / "1-page.md").unlink()
        eventually(
            lambda: "Something new." in texts() and texts().count("All about") == 6, "the change and the removal"
        )
        embedded = fake.counters()["texts"]
        for file in (root / "guide").iterdir():
            file.unlink()
        eventually(lambda: any("nothing was removed" in str(line) for line in running.lines()), "the refusal")
        assert texts().count("All about") == 6
        assert running.readiness()["ready"] is True
        assert running.stop() == 0
    assert fake.counters()["texts"] == embedded


def test_an_edited_section_is_embedded_alone(
    tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]], fake: Embedder
) -> None:
    """By the command after a deployment: one section changed, one text embedded; nothing changed, nothing written."""
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    sections = [f"## Part {number}\n\n{LONG}{number}" for number in range(6)]
    page.write_text("\n\n".join(sections), "utf-8")
    order = ("docs-sync", str(page.parent), "--allow", "**", "--json")
    assert command(*order, env=env).value["added"] == ["page.md"]
    with worker(tmp_path, env) as running:
        running.until_ready()
        assert database.knowledge_chunks.count_documents({}) == 6
        embedded, before = fake.counters()["texts"], list(database.knowledge_chunks.find().sort("_id"))
        page.write_text("\n\n".join([*sections[:3], "", sections[3].replace("Many", "Few"), *sections[4:]]), "utf-8")
        assert command(*order, env=env).value["changed"] == ["page.md"]
        eventually(lambda: database.knowledge_chunks.count_documents({"text": {"$regex": "Few"}}), "the new section")
        assert fake.counters()["texts"] == embedded + 1
        after = {row["_id"]: row for row in database.knowledge_chunks.find()}
        assert [row["_id"] for row in before if after[row["_id"]] != row] == [before[3]["_id"]]
        assert command(*order, env=env).value["kept"] == 1
        assert running.stop() == 0


def test_two_sites_live_side_by_side(tmp_path: Path, env: dict[str, str], database: Database[dict[str, Any]]) -> None:
    """The same paths under two names and two base urls; pruning one leaves the other; nothing comes from outside."""
    for site in ("help", "dev"):
        _pages(tmp_path / site, "a.md", "b.md", "c.md")
    (tmp_path / "secret.md").write_text("# Secret")
    (tmp_path / "help" / "link.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "help" / "up").symlink_to(tmp_path)

    def run(site: str, *more: str) -> dict[str, Any]:
        path, base = str(tmp_path / site), f"/{site}"
        return command(
            "docs-sync", path, "--site", site, "--base-url", base, "--allow", "**", "--json", *more, env=env
        ).value

    assert [run(site)["added"] for site in ("help", "dev")] == [["a.md", "b.md", "c.md"]] * 2
    assert sorted(row["url"] for row in database.docs.find({"path": "a.md"})) == ["/dev/a", "/help/a"]
    (tmp_path / "help" / "a.md").unlink()
    assert run("help", "--prune", "--dry-run")["removed"] == ["a.md"]
    assert run("help", "--prune")["removed"] == ["a.md"]
    assert database.docs.count_documents({"site": "help"}) == 2
    assert database.docs.count_documents({"site": "dev"}) == 3
    (tmp_path / "dev" / "a.md").unlink()
    (tmp_path / "dev" / "b.md").unlink()
    refused = run("dev", "--prune")
    assert "2 of 3" in refused["refused"]
    assert run("dev", "--prune-anyway")["removed"] == ["a.md", "b.md"]
    assert not database.docs.count_documents({"markdown": {"$regex": "Secret"}})
