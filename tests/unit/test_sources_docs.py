"""Documentation pages as chunks: titles, links, paths, hidden pages, and whole real trees."""

import json
import re
from pathlib import Path

import pytest

from brain.knowledge.pin import MINILM, OPENAI_SMALL, Model
from brain.knowledge.tokens import counter_for
from tests.support.words import NOW, words
from worker.model import Document
from worker.sources.docs import Docs
from worker.sources.source import Setting

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared" / "corpus" / "docs"
SAMPLE = ROOT / "deploy" / "sample" / "docs"
LONG = "Many words make this section long enough to stand alone. " * 12
CODE = re.compile(r"^\s*(`{3,}).*?^\s*\1$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
PAGE: Document = {
    "title": "Spots",
    "url": "/docs/spots",
    "markdown": f"# Spots\n\n{LONG}\n\n## Usage\n\n{LONG}\n\n### Options\n\n{LONG}\n\n## Über uns {{#about}}\n\n{LONG}",
}


def test_a_chunk_a_section() -> None:
    """The title and the path first, the link to the section, stable names."""
    parts = Docs().shape(PAGE, words()).parts
    assert [part.name for part in parts] == ["(top)", "usage", "usage/options", "about"]
    assert [part.text.split("\n")[0] for part in parts] == [
        "Spots",
        "Spots > Usage",
        "Spots > Usage > Options",
        "Spots > Über uns",
    ]
    assert [part.metadata.url for part in parts] == [
        "/docs/spots",
        "/docs/spots#usage",
        "/docs/spots#options",
        "/docs/spots#about",
    ]
    assert [part.metadata.extra["headingPath"] for part in parts] == [[], ["Usage"], ["Usage", "Options"], ["Über uns"]]
    assert {(part.metadata.doc_type, part.metadata.sport, part.metadata.title) for part in parts} == {
        ("doc", None, "Spots")
    }


def test_a_long_section_repeats_its_path() -> None:
    """Splits are named with a mark that no anchor holds."""
    parts = Docs().shape({**PAGE, "markdown": f"## Usage\n\n{LONG * 4}"}, words(limit=200)).parts
    assert [part.name for part in parts] == ["usage", "usage~2", "usage~3"]
    assert all(part.text.startswith("Spots > Usage\n\n") for part in parts)


@pytest.mark.parametrize(
    "hidden",
    [
        {"frontMatter": {"draft": True}},
        {"frontMatter": {"unlisted": "true"}},
        {"markdown": "---\ndraft: true\n---\ntext"},
    ],
)
def test_drafts_and_unlisted_pages_are_hidden(hidden: Document) -> None:
    """By the stored front matter, or by that in a row written by hand."""
    assert Docs().shape({**PAGE, **hidden}, words()).parts == ()


def test_a_row_written_by_hand() -> None:
    """No site, no title, no url: the title is the first heading, and there is no link."""
    (part,) = Docs().shape({"_id": 5, "markdown": "# Hello *there*\n\nText."}, words()).parts
    assert part.text == "Hello there\n\nText."
    assert part.metadata.title == "Hello there"
    assert part.metadata.url is None


def test_a_summary_stands_at_the_top() -> None:
    """The front matter's description is told once, before the text or where there is none before the first heading."""
    page = {**PAGE, "frontMatter": {"description": "Where to ride."}}
    first, second, *_ = Docs().shape(page, words()).parts
    assert (first.name, second.name) == ("(top)", "usage")
    assert first.text.startswith("Spots\n\nWhere to ride.\n\nMany words")
    bare, *_ = Docs().shape({**page, "markdown": f"## Usage\n\n{LONG}"}, words()).parts
    assert (bare.name, bare.text, bare.metadata.url) == ("(top)", "Spots\n\nWhere to ride.", "/docs/spots")
    again = {**page, "markdown": f"Where to ride. {LONG}"}
    assert Docs().shape(again, words()).parts[0].text.count("Where to ride.") == 1


def test_text_before_and_after_the_title_has_two_names() -> None:
    """Both stand under the title alone, and neither may overwrite the other; marks of code in a title do not matter."""
    parts = Docs().shape({**PAGE, "title": "spots", "markdown": f"{LONG}\n\n# `Spots`\n\n{LONG} Two."}, words()).parts
    assert [part.name for part in parts] == ["(top)", "(top)~again2"]
    assert all(part.text.startswith("spots\n\nMany") for part in parts)


def test_diagrams_are_left_out_and_counted() -> None:
    """The source of a diagram is no text; that there was one is told."""
    shaped = Docs().shape({**PAGE, "markdown": "Text.\n\n```mermaid\ngraph TD; A-->B\n```\n"}, words())
    assert [part.text for part in shaped.parts] == ["Spots\n\nText."]
    assert shaped.oddities == ("diagram",)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/docs/a#old", "/docs/a"),
        ("https://site.example/docs", None),
        ("//site.example/docs", None),
        ("javascript:x", None),
        ("docs/a", None),
        ("/a b", None),
        (5, None),
    ],
)
def test_page_urls(url: object, expected: str | None) -> None:
    """A url that is none gives no link."""
    assert Docs().shape({"markdown": "text", "url": url}, words()).parts[0].metadata.url == expected


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is absent")
@pytest.mark.parametrize(("model", "limit"), [(MINILM, 256), (OPENAI_SMALL, 512)])
@pytest.mark.parametrize("tree", ["redux", "jest", "react-native"])
def test_real_trees(tree: str, model: Model, limit: int) -> None:
    """Every page with the real tokenizer: below the limit, unique names, JSON metadata, no markup left over."""
    setting = Setting(NOW, counter_for(model), limit)
    chunks = 0
    for file in sorted((CORPUS / tree).rglob("*.md*")):
        parts = Docs().shape({"markdown": file.read_text("utf-8"), "url": "/docs/x"}, setting).parts
        assert len({part.name for part in parts}) == len(parts), file
        chunks += len(parts)
        for part in parts:
            assert setting.tokens.count(part.text) <= limit, (file, part.name)
            assert json.loads(json.dumps(part.metadata.as_fields()))
            prose = CODE.sub("", part.text)
            for left in ("<TabItem", "<Tabs", ":::", "{/*", "<!--", "@theme/Tabs", "{#", "]("):
                assert left not in prose, (file, part.name, left)
    assert chunks > 400


@pytest.mark.skipif(not SAMPLE.is_dir(), reason="deploy/sample is absent")
def test_sample_docs() -> None:
    """Every sample page says something, in few enough words."""
    for file in sorted(SAMPLE.rglob("*.md*")):
        shaped = Docs().shape({"markdown": file.read_text("utf-8"), "path": file.name}, words())
        drafted = "\ndraft: true" in file.read_text("utf-8")
        assert bool(shaped.parts) is not drafted, file
