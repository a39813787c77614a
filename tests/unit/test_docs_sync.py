"""docs-sync: what is a page, where it lives on the site, what is written, and what is refused."""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest

from worker.docs_sync import SyncOptions, SyncPlan, SyncReport, plan_sync, read_tree, sync
from worker.docs_sync.names import page_url, without_prefix
from worker.docs_sync.tree import is_allowed
from worker.errors import EXIT_DIFFERENCES, EXIT_OK, EXIT_USAGE, ConfigurationFault

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "deploy" / "sample" / "docs"
CORPUS = ROOT.parent / "shared" / "corpus" / "docs"
NOW = datetime(2026, 11, 30, tzinfo=UTC)


class MemoryDocs:
    """The docs collection in memory."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, object]] = {}
        self.writes = 0

    async def stored(self, site: str) -> Mapping[str, str]:
        """Hashes by path."""
        return {path: str(row["hash"]) for (of, path), row in self.rows.items() if of == site}

    async def apply(self, plan: SyncPlan, now: datetime) -> None:
        """Write the plan."""
        self.writes += 1
        for page in (*plan.add, *plan.change):
            self.rows[page.site, page.path] = page.as_row(now)
        for path in plan.remove:
            del self.rows[plan.site, path]


def write(root: Path, **files: str) -> None:
    """Files by path; `__` stands for a slash and `_dot_` for a dot."""
    for name, text in files.items():
        place = root / name.replace("__", "/").replace("_dot_", ".")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


async def run(root: Path, docs: MemoryDocs, *, prune: bool = False, **options: object) -> SyncReport:
    """One run that allows everything."""
    chosen = SyncOptions(allow=("**",), prune=prune, prune_any=bool(options.get("prune_any")))
    return await sync(root, docs, chosen, NOW)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01-intro", "intro"),
        ("10 - spots", "spots"),
        ("2._x", "x"),
        ("intro", "intro"),
        ("2026-11-30-news", "2026-11-30-news"),
        ("11-30-news", "11-30-news"),
        ("7.0-notes", "7.0-notes"),
        ("50-50", "50-50"),
        ("01-", "01-"),
    ],
)
def test_number_prefixes(name: str, expected: str) -> None:
    """Dropped as Docusaurus drops them; dates and versions stay."""
    assert without_prefix(name) == expected


@pytest.mark.parametrize(
    ("path", "front_matter", "url"),
    [
        ("intro.md", {}, "/docs/intro"),
        ("index.md", {}, "/docs"),
        ("05-spots/README.md", {}, "/docs/spots"),
        ("05-spots/05-spots.md", {}, "/docs/spots"),
        ("05-spots/02-add.mdx", {}, "/docs/spots/add"),
        ("adrs/006-x.md", {}, "/docs/adrs/x"),
        ("a/b.md", {"id": "c"}, "/docs/a/c"),
        ("a/b.md", {"slug": "/"}, "/docs"),
        ("a/b.md", {"slug": "/x/y/"}, "/docs/x/y"),
        ("a/b.md", {"slug": "rel"}, "/docs/a/rel"),
        ("a/b.md", {"slug": "../../../rel"}, "/docs/rel"),
        ("a/b.md", {"slug": 2026}, "/docs/a/2026"),
        ("a/b.md", {"slug": None, "id": 5}, "/docs/a/b"),
        ("a/ä b.md", {}, "/docs/a/%C3%A4%20b"),
    ],
)
def test_urls(path: str, front_matter: Mapping[str, object], url: str) -> None:
    """Docusaurus' rules for folders, indexes, ids and slugs."""
    assert page_url(PurePosixPath(path), front_matter, "/docs") == url
    assert page_url(PurePosixPath(path), front_matter, "/docs/") == url


@pytest.mark.parametrize(
    ("globs", "path", "allowed"),
    [
        (("**",), "a/b/c.md", True),
        (("**",), "a.md", True),
        (("guides/**",), "guides/a/b.md", True),
        (("guides/**",), "guides-internal/a.md", False),
        (("*.md",), "a/b.md", False),
        (("a/*.md", "x/**"), "a/b.md", True),
        (("Guides/**",), "guides/a.md", False),
        (("!secret/**",), "other/a.md", False),
        ((), "a.md", False),
    ],
)
def test_the_allow_list(globs: tuple[str, ...], path: str, *, allowed: bool) -> None:
    """A glob must match the whole path; nothing is allowed by accident."""
    assert is_allowed(PurePosixPath(path), globs) is allowed


def test_what_is_a_page(tmp_path: Path) -> None:
    """Partials, hidden folders and other files are none; titles fall back from front matter to the file's name."""
    write(
        tmp_path,
        a_dot_md="---\ntitle: ' From  front matter '\ndate: 2026-01-02\n---\n# Heading",
        b_dot_mdx="import X from 'x'\n\n# The *heading*\n\ntext",
        sub__c_dot_md="---\nsidebar_label: Label\n---\ntext",
        sub__02_number_dot_md="text",
        _partial_dot_md="no page",
        _private__d_dot_md="no page",
        node_modules__e_dot_md="no page",
        image_dot_png="no page",
    )
    tree = read_tree(tmp_path, ("**",), "docs", "/docs")
    assert {page.path: page.title for page in tree.pages} == {
        "a.md": "From front matter",
        "b.mdx": "The heading",
        "sub/c.md": "Label",
        "sub/02_number.md": "number",
    }
    assert tree.pages[0].front_matter == {"title": " From  front matter ", "date": "2026-01-02"}
    assert tree.pages[0].markdown == "# Heading"
    assert tree.folders == {".": 2, "sub": 2}
    assert [(skip.path, skip.reason, skip.problem) for skip in tree.skipped] == [("_partial.md", "partial", False)]


def test_links_out_of_the_tree_are_refused(tmp_path: Path) -> None:
    """No symbolic link is followed, be it to a file or to a folder, and no partial outside is read."""
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret")
    root = tmp_path / "docs"
    root.mkdir()
    (root / "link.md").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path)
    (root / "_linked.mdx").symlink_to(secret)
    (root / "page.mdx").write_text(
        "import A from '../secret.md'\nimport B from './_linked.mdx'\n\nHello\n\n<A />\n\n<B />\n", "utf-8"
    )
    tree = read_tree(root, ("**",), "docs", "/docs")
    assert [page.path for page in tree.pages] == ["page.mdx"]
    assert "Secret" not in tree.pages[0].markdown
    assert {skip.path for skip in tree.skipped} == {"link.md", "folder", "_linked.mdx"}


def test_partials_are_put_in_place(tmp_path: Path) -> None:
    """A page made of pieces holds their text; code is left alone; a change of the piece is a change of the page."""
    write(
        tmp_path,
        page_dot_mdx="import Limits from './_limits.mdx';\n\nBefore\n\n"
        '<Limits plan="plus" />\n\n```jsx\n<Limits />\n```\n',
        _limits_dot_mdx="---\nx: 1\n---\nThree lists.\n",
    )
    (page,) = read_tree(tmp_path, ("**",), "docs", "/docs").pages
    assert page.markdown.count("Three lists.") == 1
    assert "```jsx\n<Limits />\n```" in page.markdown
    write(tmp_path, _limits_dot_mdx="Four lists.\n")
    assert read_tree(tmp_path, ("**",), "docs", "/docs").pages[0].hash != page.hash


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"caf\xe9", "it is not UTF-8 (byte 3)"),
        (b"---\na: [1\n---\n", "front matter is not YAML"),
        (b"---\n- a\n---\n", "front matter is not a mapping"),
        (b"---\na: &x [1]\nb: *x\n---\n", "front matter uses YAML aliases"),
        (b"x" * 4_000_001, "it is larger than"),
    ],
)
async def test_an_unreadable_page_is_reported_and_never_pruned(tmp_path: Path, content: bytes, reason: str) -> None:
    """The others are synced, the exit code is 1, the stored page stays although the file cannot be read."""
    docs = MemoryDocs()
    write(tmp_path, good_dot_md="one", bad_dot_md="fine yet", gone_dot_md="x")
    await run(tmp_path, docs)
    (tmp_path / "bad.md").write_bytes(content)
    (tmp_path / "gone.md").unlink()
    write(tmp_path, good_dot_md="two")
    report = await run(tmp_path, docs, prune=True)
    assert report.problems.keys() == {"bad.md"}
    assert report.problems["bad.md"].startswith(reason)
    assert (report.changed, report.removed, report.exit_code) == (("good.md",), ("gone.md",), EXIT_DIFFERENCES)
    assert docs.rows["docs", "bad.md"]["markdown"] == "fine yet"


async def test_sync_writes_only_differences(tmp_path: Path) -> None:
    """Add, change, keep, remove; a second run writes nothing."""
    docs = MemoryDocs()
    write(tmp_path, a_dot_md="a", b_dot_md="b", draft_dot_md="---\ndraft: true\n---\nd")
    first = await run(tmp_path, docs)
    assert (first.added, first.hidden, first.exit_code) == (("a.md", "b.md", "draft.md"), ("draft.md",), EXIT_OK)
    assert docs.rows["docs", "a.md"].keys() == {
        *("site", "path", "title", "markdown", "url", "frontMatter", "hash", "updatedAt"),
    }
    assert (await run(tmp_path, docs)).kept == 3
    assert docs.writes == 1
    write(tmp_path, b_dot_md="b2", c_dot_md="c")
    (tmp_path / "a.md").unlink()
    second = await run(tmp_path, docs)
    assert (second.added, second.changed, second.removed, second.gone) == (("c.md",), ("b.md",), (), ("a.md",))
    assert ("docs", "a.md") in docs.rows
    third = await run(tmp_path, docs, prune=True)
    assert (third.removed, third.gone) == (("a.md",), ())
    assert json.loads(json.dumps(third.as_json()))["removed"] == ["a.md"]


async def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """The report says what would be."""
    docs = MemoryDocs()
    write(tmp_path, a_dot_md="a")
    report = await sync(tmp_path, docs, SyncOptions(allow=("**",), dry_run=True), NOW)
    assert (report.added, docs.rows, report.dry_run) == (("a.md",), {}, True)


async def test_without_an_allow_list_nothing_happens(tmp_path: Path) -> None:
    """Exit 64 and the folders, so that the operator can choose."""
    docs = MemoryDocs()
    write(tmp_path, a_dot_md="a", security__b_dot_md="b", security__c_dot_md="---\n: [\n---\n")
    report = await sync(tmp_path, docs, SyncOptions(), NOW)
    assert (report.exit_code, report.folders, docs.writes) == (EXIT_USAGE, {".": 1, "security": 2}, 0)
    assert not report.problems


async def test_sites_do_not_touch_each_other(tmp_path: Path) -> None:
    """Pruning one site leaves the other."""
    docs = MemoryDocs()
    write(tmp_path, a_dot_md="a")
    await sync(tmp_path, docs, SyncOptions(site="other", allow=("**",)), NOW)
    await run(tmp_path, docs, prune=True)
    assert set(docs.rows) == {("other", "a.md"), ("docs", "a.md")}


async def test_pruning_too_much_is_refused(tmp_path: Path) -> None:
    """An empty tree or a third of the pages gone looks like a mistake; the rest is still written; a flag overrides."""
    docs = MemoryDocs()
    write(tmp_path, **{f"p{number}_dot_md": "x" for number in range(20)})
    await run(tmp_path, docs)
    for number in range(7):
        (tmp_path / f"p{number}.md").unlink()
    write(tmp_path, new_dot_md="new")
    report = await run(tmp_path, docs, prune=True)
    assert report.refused is not None
    assert "7 of 20" in report.refused
    assert (report.removed, report.added, report.exit_code) == ((), ("new.md",), EXIT_DIFFERENCES)
    assert len((await run(tmp_path, docs, prune=True, prune_any=True)).removed) == 7
    empty = tmp_path / "empty"
    empty.mkdir()
    report = await run(empty, docs, prune=True)
    assert report.refused is not None
    assert not report.removed


@pytest.mark.parametrize(
    ("stored", "gone", "refused"),
    [
        (1, 1, True),
        (2, 1, False),
        (3, 1, False),
        (3, 2, True),
        (6, 2, False),
        (6, 3, True),
        (12, 5, False),
        (12, 6, True),
    ],
)
def test_small_sites(tmp_path: Path, stored: int, gone: int, *, refused: bool) -> None:
    """One page may always go while others stay, a few while more than half stays: half a tree is a broken checkout."""
    for number in range(gone, stored):
        write(tmp_path, **{f"p{number}_dot_md": "x"})
    rows = {f"p{number}.md": "h" for number in range(stored)}
    plan = plan_sync(read_tree(tmp_path, ("**",), "docs", "/docs"), rows, "docs", prune=True)
    assert (plan.refused is not None) is refused
    assert len(plan.remove) == (0 if refused else gone)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_folder_that_cannot_be_read_protects_its_pages(tmp_path: Path) -> None:
    """What is below it counts as unread, not as gone."""
    docs = MemoryDocs()
    write(tmp_path, a_dot_md="a", sub__b_dot_md="b")
    await run(tmp_path, docs)
    (tmp_path / "sub").chmod(0)
    report = await run(tmp_path, docs, prune=True)
    (tmp_path / "sub").chmod(0o755)
    assert (report.problems.keys(), report.removed) == ({"sub/"}, ())


def test_a_missing_folder_is_the_operators_mistake(tmp_path: Path) -> None:
    """Said by name."""
    with pytest.raises(ConfigurationFault, match="no folder"):
        read_tree(tmp_path / "nowhere", ("**",), "docs", "/docs")


@pytest.mark.skipif(not SAMPLE.is_dir(), reason="deploy/sample is absent")
def test_the_sample_folder() -> None:
    """Every sample page is read; overridden ids and slugs are honoured."""
    tree = read_tree(SAMPLE, ("**",), "docs", "/docs")
    urls = {page.path: page.url for page in tree.pages}
    assert urls["intro.md"] == "/docs"
    assert urls["06-videos-and-films.md"] == "/docs/films"
    assert urls["10-account/privacy.md"] == "/docs/account/privacy-and-safety"
    assert len(set(urls.values())) == len(urls)
    assert not [skip for skip in tree.skipped if skip.problem]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is absent")
@pytest.mark.parametrize(("site", "pages"), [("redux", 80), ("jest", 30), ("react-native", 200)])
def test_real_trees(site: str, pages: int) -> None:
    """Real documentation is read without a single problem."""
    tree = read_tree(CORPUS / site, ("**",), site, "/docs")
    assert len(tree.pages) > pages
    assert not [skip for skip in tree.skipped if skip.problem]
    assert all(page.title for page in tree.pages)
