"""Random edits of one section of a documentation page, as a writer makes them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.bench.stage import sentence
from worker.docs_sync.page import DocsPage

_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_HEADING: Final = re.compile(r"^#{1,3}\s")
_LINK: Final = re.compile(r"(?<!!)\[[^\[\]`]+\]\((https?://[^\s()]+)\)")
_PLAIN: Final = re.compile(r"^[A-Z][A-Za-z ,'.]{40,}[.]$")


@dataclass(frozen=True, slots=True)
class Edit:
    """A page before and after, and the text of the section that changed, as it is afterwards."""

    before: DocsPage
    after: DocsPage
    section: str


def edited(page: DocsPage, kind: str, rng: Random) -> Edit | None:
    """The page with one random section edited; None where this kind of edit has no place there."""
    if kind == "front matter":
        values = {**page.front_matter, "sidebar_position": rng.randrange(1000)}
        return Edit(page, replace(page, front_matter=values), "")
    sections = _sections(page.markdown)
    index = rng.randrange(len(sections))
    changed = _EDITS[kind](sections[index], rng)
    if changed is None or changed == sections[index]:
        return None
    markdown = "".join([*sections[:index], changed, *sections[index + 1 :]])
    return Edit(page, replace(page, markdown=markdown), changed)


def _sections(markdown: str) -> list[str]:
    """The stretches between headings of levels 1 to 3, outside of code; joined they are the page."""
    sections: list[list[str]] = [[]]
    fenced = False
    for line in markdown.splitlines(keepends=True):
        fenced ^= bool(_FENCE.match(line))
        if not fenced and _HEADING.match(line):
            sections.append([])
        sections[-1].append(line)
    return ["".join(lines) for lines in sections if lines]


def _prose(section: str) -> list[int]:
    """The lines that are one whole sentence of plain words, so that an edit of them touches no markup."""
    found: list[int] = []
    fenced = False
    for index, line in enumerate(section.splitlines(keepends=True)):
        fenced ^= bool(_FENCE.match(line))
        if not fenced and _PLAIN.match(line.rstrip("\n")):
            found.append(index)
    return found


def _at_a_line(section: str, rng: Random, change: Callable[[str], str]) -> str | None:
    lines = section.splitlines(keepends=True)
    places = _prose(section)
    if not places:
        return None
    index = rng.choice(places)
    lines[index] = change(lines[index])
    return "".join(lines)


def _word(section: str, rng: Random) -> str | None:
    def change(line: str) -> str:
        words = line.split(" ")
        words[rng.randrange(1, len(words) - 1)] = sentence(rng, 1)
        return " ".join(words)

    return _at_a_line(section, rng, change)


def _longer(section: str, rng: Random) -> str | None:
    return _at_a_line(section, rng, lambda line: f"{line.rstrip()} {sentence(rng, 12).capitalize()}.\n")


def _shorter(section: str, rng: Random) -> str | None:
    return _at_a_line(section, rng, lambda _line: "\n") if len(_prose(section)) > 1 else None


def _paragraph(section: str, rng: Random) -> str | None:
    added = f"\n\n{sentence(rng, 25).capitalize()}.\n"
    return _at_a_line(section, rng, lambda line: f"{line.rstrip()}{added}\n")


def _whitespace(section: str, rng: Random) -> str | None:
    return _at_a_line(section, rng, lambda line: f"{line.rstrip()} \n" if line.endswith("\n") else line)


def _target(section: str, rng: Random) -> str | None:
    found = list(_LINK.finditer(section))
    if not found:
        return None
    link = rng.choice(found)
    return f"{section[: link.start(1)]}{link.group(1)}x{section[link.end(1) :]}"


KINDS: Final = ("a word", "a longer sentence", "a sentence less", "a paragraph more")
"""Edits of the text of one section."""

SILENT: Final = ("whitespace", "external link target", "front matter")
"""Edits that change no text; where a link within the site leads is text (worker/sources)."""

_EDITS: Final[Mapping[str, Callable[[str, Random], str | None]]] = {
    "a word": _word,
    "a longer sentence": _longer,
    "a sentence less": _shorter,
    "a paragraph more": _paragraph,
    "whitespace": _whitespace,
    "external link target": _target,
}
