"""Editing one section embeds that section only, and edits that change no text embed nothing.

The measure: tokens embedded ÷ tokens of the section that was edited, over seeded random edits. `CORPUS_EDITS=200`
repeats the measurement of the issue over the three real trees.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import pytest

from brain.knowledge.pin import MINILM, OPENAI_SMALL, Model
from brain.knowledge.tokens import counter_for
from tests.support.words import NOW
from worker.docs_sync import DocsPage, read_tree
from worker.model import Part
from worker.sources.docs import Docs
from worker.sources.mdx import fences_of
from worker.sources.source import Setting

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "docs"
SAMPLE = Path(__file__).parents[2] / "deploy" / "sample" / "docs"
EDITS: Final = int(os.environ.get("CORPUS_EDITS", "25"))
MOST: Final = 1.15
MARK: Final = "zyzzyva"
_PROSE: Final = re.compile(r"[A-Za-z][^\n]{30,}[a-z.]")
_PART: Final = re.compile(r"~\d+$")
NO_CORPUS = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is absent")
TREES = [pytest.param(CORPUS / name, marks=[pytest.mark.slow, NO_CORPUS]) for name in ("redux", "jest", "react-native")]


@dataclass(frozen=True, slots=True)
class Edit:
    """What an edit cost: tokens embedded, and tokens of the section in which it is."""

    embedded: int
    section: int


def lines_of_prose(markdown: str) -> list[int]:
    """The lines that hold a sentence: no code, no heading, no table."""
    fences = fences_of(markdown)
    found: list[int] = []
    at = 0
    for number, line in enumerate(markdown.split("\n")):
        inside = any(start <= at < end for start, end in fences)
        if not inside and _PROSE.fullmatch(line) and not line.startswith(("import ", "export ")):
            found.append(number)
        at += len(line) + 1
    return found


def edited(lines: Sequence[str], number: int, rng: Random) -> list[str]:
    """The page with one change at a line: a word, a sentence, a paragraph, or a shorter line; the mark is in it."""
    new = list(lines)
    words = new[number].split(" ")
    match rng.choice(("word", "sentence", "paragraph", "cut")):
        case "word":
            words[rng.randrange(len(words))] = MARK
            new[number] = " ".join(words)
        case "sentence":
            new[number] += f" One more sentence about {MARK} that an editor adds."
        case "paragraph":
            new[number : number + 1] = [new[number], "", f"A new paragraph about {MARK} says what nobody said.", ""]
        case _:
            new[number] = " ".join([*words[: len(words) // 2], MARK])
    return new


def stem(part: Part) -> str:
    """The name of the section that a part belongs to."""
    return _PART.sub("", part.name)


def measure(pages: Sequence[DocsPage], setting: Setting, count: int, seed: int) -> list[Edit]:
    """Seeded edits of single sections, each of one page as it is in the tree."""
    rng, done = Random(seed), list[Edit]()  # noqa: S311 - repeatable
    told = [page for page in pages if lines_of_prose(page.markdown) and not page.hidden]
    while len(done) < count:
        page = rng.choice(told)
        lines = page.markdown.split("\n")
        number = rng.choice(lines_of_prose(page.markdown))
        row = page.as_row(NOW)
        before = {part.text for part in Docs().shape(row, setting).parts}
        after = Docs().shape({**row, "markdown": "\n".join(edited(lines, number, rng))}, setting).parts
        sections = {stem(part) for part in after if MARK in part.text}
        if not sections:
            continue  # a line that is not told: an attribute, a comment
        done.append(
            Edit(
                sum(setting.tokens.count(part.text) for part in after if part.text not in before),
                sum(setting.tokens.count(part.text) for part in after if stem(part) in sections),
            )
        )
    return done


@pytest.mark.parametrize(("model", "limit"), [(OPENAI_SMALL, 512), (MINILM, 256)])
@pytest.mark.parametrize("root", [*TREES, pytest.param(SAMPLE)])
def test_an_edit_embeds_its_section(root: Path, model: Model, limit: int) -> None:
    """At most 1.15 times the tokens of the edited sections; a long section is embedded in part."""
    pages = read_tree(root, ("**",), "docs", "/docs").pages
    # In a small tree one edit that makes a small section stand alone (two chunks for one) weighs too much.
    count = max(EDITS, 60) if root == SAMPLE else EDITS
    edits = measure(pages, Setting(NOW, counter_for(model), limit), count, seed=42)
    ratio = sum(edit.embedded for edit in edits) / sum(edit.section for edit in edits)
    print(f"{root.name}, {model.name}: {len(edits)} edits, embedded ÷ changed sections = {ratio:.3f}")  # noqa: T201
    assert all(edit.embedded for edit in edits)
    assert ratio <= MOST


def silent(markdown: str) -> list[str]:
    """The page with changes that change no text: comments, blank lines, line ends, wrapping, heading ids, imports."""
    first = lines_of_prose(markdown)[0]
    lines = markdown.split("\n")
    lines[first] = lines[first].replace(" ", "\n", 1) if lines[first][0].isalpha() else lines[first]
    return [
        f"{markdown}\n\n<!-- reviewed -->\n{{/* by an editor */}}\n",
        markdown.replace("\n\n", "\n\n\n"),
        markdown.replace("\n", "\r\n"),
        f"import Unused from '@site/unused';\n\n{markdown}",
        "\n".join(lines),
    ]


@pytest.mark.parametrize("root", [*TREES, pytest.param(SAMPLE)])
def test_an_edit_that_changes_no_text_embeds_nothing(root: Path) -> None:
    """Zero new texts for comments, blank lines, line ends, imports and wrapping."""
    setting = Setting(NOW, counter_for(OPENAI_SMALL), 512)
    pages = read_tree(root, ("**",), "docs", "/docs").pages
    told = [page for page in pages if lines_of_prose(page.markdown) and not page.hidden]
    for page in Random(7).sample(told, min(len(told), EDITS)):  # noqa: S311 - repeatable
        row = page.as_row(NOW)
        before = {part.text for part in Docs().shape(row, setting).parts}
        for number, markdown in enumerate(silent(page.markdown)):
            # Blank lines inside code are text; such pages sit this one out.
            if number == 1 and any("\n\n" in page.markdown[start:end] for start, end in fences_of(page.markdown)):
                continue
            after = {part.text for part in Docs().shape({**row, "markdown": markdown}, setting).parts}
            assert after == before, (page.path, number)


def test_names_stay_while_other_sections_come_and_go() -> None:
    """A section that is added, removed or renamed renames no other; of a repeated heading, only those after it."""
    long = "Many words make this section long enough to stand alone. " * 12
    setting = Setting(NOW, counter_for(OPENAI_SMALL), 512)

    def names(*headings: str) -> dict[str, str]:
        markdown = "\n\n".join(f"## {heading}\n\n{heading}: {long}" for heading in headings)
        parts = Docs().shape({"title": "T", "markdown": markdown}, setting).parts
        return {part.text: part.name for part in parts}

    whole = names("A", "B", "C", "B")
    assert names("A", "C").items() <= whole.items()
    assert names("A", "New", "B", "C", "B").items() >= whole.items()
    assert list(names("B", "A").values()) == ["b", "a"]
