"""Anchors against Docusaurus' own rule, run in Node over every heading: explicit ids, code, JSX, repeats, partials."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import pytest

from tests.support.tools import NODE, node_package, tool
from tests.support.words import NOW, words
from worker.docs_sync import read_tree
from worker.sources.docs import Docs
from worker.sources.front_matter import split_front_matter
from worker.sources.markdown import TOP, anchors_of, read_page

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "docs"
SAMPLE = Path(__file__).parents[2] / "deploy" / "sample" / "docs"
LONG = "Many words make this section long enough to stand alone. " * 12
NO_CORPUS = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is absent")
TREES = [
    pytest.param(CORPUS / name, least, marks=[pytest.mark.slow, NO_CORPUS])
    for name, least in (("redux", 1100), ("jest", 600), ("react-native", 2100))
]
ODD = """# `code` and *more* {#given}
## Required <div className="label">on iOS</div>
### <div className="label">Required</div>**`x`**
## Comment {/* #from-comment and more */}
## Again
#### Again
> ## Again
- ## Again
Again
-----
## [A link](./x.md) & <Badge text="no" /> more
## What's new? 🏂 Größe_1
## Closed ##
<!-- a
# no heading
-->
:::note Title
### In a note
:::
<details>
<summary>More</summary>

### In details

</details>
```md
# no heading
```
{/* #no-id */}

## `a` {#has.dots}
"""


def reference(pages: Mapping[str, str]) -> dict[str, list[tuple[int, str]]]:
    """Level and id of every heading, as Docusaurus gives them."""
    node_package("remark-mdx")
    done = subprocess.run(
        [tool("node"), "anchors.mjs"], cwd=NODE, input=json.dumps(pages), capture_output=True, text=True, check=True
    )
    found = cast("dict[str, list[tuple[int, str]]]", json.loads(done.stdout))
    return {name: [(level, anchor) for level, anchor in entries] for name, entries in found.items()}


@pytest.mark.parametrize(("root", "least"), [*TREES, pytest.param(SAMPLE, 60)])
def test_every_anchor_of_real_trees(root: Path, least: int) -> None:
    """Every heading of every file has the site's own id, and every chunk links to a heading of its page."""
    files = {str(file.relative_to(root)): file.read_text("utf-8") for file in sorted(root.rglob("*.md*"))}
    bodies = {name: split_front_matter(text).body for name, text in files.items()}
    told = reference(bodies)
    for name, body in bodies.items():
        assert anchors_of(body) == [anchor for _, anchor in told[name]], name
        for part in Docs().shape({"markdown": files[name], "url": "/docs/x"}, words()).parts:
            link = unquote((part.metadata.url or "").partition("#")[2])
            assert not link or link in {anchor for level, anchor in told[name] if level <= 3}, name
    assert sum(map(len, told.values())) > least


def test_odd_headings() -> None:
    """Code, links, JSX, comments, repeats, quotes and lists: the ids of the site, and none from code or comments."""
    assert anchors_of(ODD) == [anchor for _, anchor in reference({"odd": ODD})["odd"]]
    page = read_page("## `x` <div>iOS</div>\n\n" + LONG, None, words())
    assert [(section.anchor, section.path) for section in page.sections] == [("x-ios", ("`x` iOS",))]
    assert "from-comment" in anchors_of(ODD)


def test_partials_count_for_themselves(tmp_path: Path) -> None:
    """The site compiles each partial by itself, so a repeat in another file is not numbered, on the page neither."""
    (tmp_path / "page.mdx").write_text(
        f"import A from './\\_a.mdx'; import\nB from './_b.mdx'\n\n## Setup\n\n{LONG}\n\n<A />\n\n<B/>\n\n"
        f"## Setup\n\n{LONG}",
        "utf-8",
    )
    (tmp_path / "_a.mdx").write_text(f"## Setup\n\n{LONG} One.\n\n## Setup ##\n\n{LONG} Two.\n", "utf-8")
    (tmp_path / "_b.mdx").write_text(f"## Own {{#mine}}\n\n{LONG} Three.\n\n```sh\n# no\n```\n", "utf-8")
    (page,) = read_tree(tmp_path, ("**",), "docs", "/docs").pages
    parts = Docs().shape(page.as_row(NOW), words()).parts
    assert [(part.metadata.url or "").partition("#")[2] for part in parts] == [
        *("setup", "setup", "setup-1", "mine", "setup-1"),
    ]
    assert len({part.name for part in parts}) == len(parts)
    assert TOP not in {part.name for part in parts}
