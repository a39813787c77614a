"""Links between pages: by file, by id, by path, from partials; to what riders may not read there is none."""

from pathlib import Path

import pytest

from tests.support.words import NOW, words
from worker.docs_sync import read_tree
from worker.sources.docs import Docs

SAMPLE = Path(__file__).parents[2] / "deploy" / "sample" / "docs"
PAGES = {
    "01-intro.md": "# Intro",
    "spots/index.md": "# Spots\n\n[up](../01-intro.md) [add](./02-add.md) [sibling](./add-a-spot)",
    "spots/02-add.md": "---\nid: add-a-spot\n---\n# Add",
    "spots/03-named.mdx": "---\nslug: /special\n---\n# Named",
    "spots/04-draft.md": "---\ndraft: true\n---\n# Draft",
    "internal/secret.md": "# Secret",
    "parts/_more.mdx": "See [adding](../spots/02-add.md#how).",
}


def tree_text(folder: Path, body: str, base: str = "/docs") -> str:
    """The text of the one chunk of spots/page.mdx, whose body this is, in a small tree."""
    for name, text in {**PAGES, "spots/page.mdx": body}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    tree = read_tree(folder, ("*.md", "spots/**"), "docs", base)
    page = next(page for page in tree.pages if page.path == "spots/page.mdx")
    (part,) = Docs().shape(page.as_row(NOW), words()).parts
    return part.text.partition("\n\n")[2]


@pytest.mark.parametrize(
    ("link", "told"),
    [
        ("./02-add.md", "a (/docs/spots/add-a-spot)"),
        ("02-add.md#how-to", "a (/docs/spots/add-a-spot#how-to)"),
        ("../01-intro.md", "a (/docs/intro)"),
        ("/01-intro.md", "a (/docs/intro)"),
        ("/docs/01-intro.md", "a (/docs/intro)"),
        ("spots/index.md", "a (/docs/spots)"),
        ("./03-named.mdx", "a (/docs/special)"),
        ("add-a-spot?x=1#y", "a (/docs/spots/add-a-spot#y)"),
        ("../intro", "a (/docs/intro)"),
        ("/docs/intro", "a (/docs/intro)"),
        ("/map", "a (/map)"),
        ("/img/map.png", "a"),
        ("./04-draft.md", "a"),
        ("../internal/secret.md", "a"),
        ("../../../etc/passwd.md", "a"),
        ("./nowhere.md", "a"),
        ("./nowhere", "a"),
        ("https://elsewhere.example/x", "a"),
        ("//elsewhere.example/x", "a"),
        ("mailto:a@example.com", "a"),
        ("#here", "a"),
        ("http://[broken/x", "a"),
    ],
)
def test_links_become_site_paths(tmp_path: Path, link: str, told: str) -> None:
    """As Docusaurus resolves them, by overridden ids and slugs too; what leads nowhere known is its words alone."""
    assert tree_text(tmp_path, f"[a]({link})") == told


def test_code_keeps_its_links(tmp_path: Path) -> None:
    """What is shown as code is shown as it was written; definitions count as links do."""
    body = "`[a](./02-add.md)`\n\n```md\n[a](./02-add.md)\n```\n\n[b][x]\n\n[x]: ./02-add.md\n"
    assert tree_text(tmp_path, body) == (
        "`[a](./02-add.md)`\n\n```md\n[a](./02-add.md)\n```\n\nb (/docs/spots/add-a-spot)"
    )


def test_a_partials_links_hold_where_it_is_shown(tmp_path: Path) -> None:
    """They count from the partial's folder; a base url of the root needs no prefix."""
    body = "import More from '../parts/_more.mdx'\n\n<More />\n"
    assert tree_text(tmp_path, body, "/") == "See adding (/spots/add-a-spot#how)."


def test_an_index_page_links_from_its_folder(tmp_path: Path) -> None:
    """By file and by path, with the slash that a site may put behind it."""
    tree_text(tmp_path, "x")
    tree = read_tree(tmp_path, ("**",), "docs", "/docs")
    index = next(page for page in tree.pages if page.path == "spots/index.md")
    assert index.markdown.endswith("[up](/docs/intro) [add](/docs/spots/add-a-spot) [sibling](/docs/spots/add-a-spot)")


def test_every_link_of_the_sample_leads_to_a_page() -> None:
    """All links between sample pages are resolved to pages of the sample."""
    tree = read_tree(SAMPLE, ("**",), "docs", "/docs")
    urls = {page.url for page in tree.pages}
    told = [
        word
        for page in tree.pages
        for part in Docs().shape(page.as_row(NOW), words()).parts
        for word in part.text.split()
    ]
    links = [word.strip("().,;:").partition("#")[0] for word in told if word.startswith("(/docs")]
    assert links
    assert set(links) <= urls
