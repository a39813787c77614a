"""Markdown by its headings: sections of levels 1 to 3, each with its heading path and its anchor.

A section under SMALL tokens joins the one before it, so that no chunk is a heading and a half sentence; a long one is
split between blocks with the path repeated. Headings are found by a parser, so a `#` inside code is never one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from brain.knowledge.domain.clean import scrub
from worker.errors import UnreadableDocument
from worker.sources.anchors import Slugger, explicit_id
from worker.sources.blocks import blocks_of, inline_text, is_diagram
from worker.sources.mdx import plain_markdown
from worker.sources.source import Setting
from worker.sources.split import MOST_CHARACTERS, SMALL, Block, tokens_of, weight_of

MOST_NESTED: Final = 60
"""How deep lists and quotes may stand in each other; each one counts once or twice."""
TOP: Final = "(top)"
"""The part name of the text before the first heading below the title; no anchor can look like it."""
_DEEPEST: Final = 3
_MOST_CHARACTERS_A_TOKEN: Final = 16  # a text longer than SMALL times this is not small; it need not be counted
_LONGEST_NAME: Final = 160
_CODE_INDENT: Final = 4
_BORDERS: Final = 4  # one small section in so many is a border

# As MDX reads a page: no indented code, no HTML (mdx.py took the tags out; what is left are somebody's words).
_PARSER: Final = (
    MarkdownIt("commonmark", {"maxNesting": MOST_NESTED}).enable("table").disable(["html_block", "html_inline", "code"])
)


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a page. `path` holds the headings above it, its own last; `anchor` is None at the top."""

    name: str
    path: tuple[str, ...] = ()
    anchor: str | None = None
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page in sections; `heading` is its first level-1 heading.

    `too_deep`: something is nested deeper than is read; `diagrams`: there were some, and they were left out.
    """

    heading: str | None
    sections: tuple[Section, ...]
    too_deep: bool = False
    diagrams: bool = False


@dataclass(frozen=True, slots=True)
class _Heading:
    level: int
    text: str
    anchor: str


@dataclass(slots=True)
class _Draft:
    """A section while it is read: where it is, and its tokens."""

    above: tuple[_Heading, ...] = ()
    tokens: list[Token] = field(default_factory=list[Token])


def read_page(markdown: str, title: str | None, setting: Setting) -> Page:
    """The page in sections, small ones joined. Takes scrubbed text without front matter.

    A first heading that says the title again (or any first level-1 heading when there is no title) is not repeated in
    the paths. Raises UnreadableDocument above MOST_CHARACTERS.
    """
    if len(markdown) > MOST_CHARACTERS:
        reason = f"more than {MOST_CHARACTERS} characters of Markdown"
        raise UnreadableDocument(reason)
    source = plain_markdown(markdown)
    tokens = _PARSER.parse(source)
    drafts = _drafts(tokens, source.split("\n"))
    first = next((heading for draft in drafts for heading in draft.above[-1:] if heading.level == 1), None)
    titled = first if first is not None and (not title or _bare(title) == _bare(first.text)) else None
    sections = [_section(draft, titled) for draft in drafts]
    heading = first.text if first else None
    joined = _joined(sections, drafts, title or heading or "", setting)
    deep = any(token.level >= MOST_NESTED - 1 for token in tokens)
    return Page(heading, tuple(_unique(joined)), deep, any(map(is_diagram, tokens)))


def first_heading(markdown: str) -> str | None:
    """The text of the first level-1 heading of a page, or None."""
    tokens = _PARSER.parse(plain_markdown(scrub(markdown)[:MOST_CHARACTERS]))
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.tag == "h1" and opening.level == 0:
            return " ".join(explicit_id(inline_text(inline))[0].split()) or None
    return None


def anchors_of(text: str) -> list[str]:
    """The anchor of every heading of a page, in order. Takes scrubbed text without front matter."""
    slugger = Slugger()
    tokens = _PARSER.parse(plain_markdown(text))
    return [_anchored(inline, slugger)[1] for opening, inline in pairwise(tokens) if opening.type == "heading_open"]


def headings_of(text: str) -> list[tuple[int, str]]:
    """The line on which each heading ends, and its anchor; nothing where MDX hides headings or makes other ones."""
    ends = [
        token.map[1] - (1 if token.markup.startswith("#") else 2)
        for token in _PARSER.parse(text)
        if token.type == "heading_open" and token.map
    ]
    anchors = anchors_of(text)
    return list(zip(ends, anchors, strict=True)) if len(ends) == len(anchors) else []


def _anchored(inline: Token, slugger: Slugger) -> tuple[str, str]:
    """A heading's text, and its anchor: the explicit id, which is not counted, else the next slug of its text."""
    slug_text, given = explicit_id(inline_text(inline, plain=True))
    return " ".join(explicit_id(inline_text(inline))[0].split()), given or slugger.slug(slug_text)


def _drafts(tokens: Sequence[Token], lines: Sequence[str]) -> list[_Draft]:
    """Cut the tokens at the headings of levels 1 to 3; every heading counts for the numbering of anchors."""
    slugger = Slugger()
    drafts = [_Draft()]
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.type != "heading_open":
            drafts[-1].tokens.append(token)
            at += 1
            continue
        inline = tokens[at + 1]
        text, anchor = _anchored(inline, slugger)
        level = int(token.tag[1])
        if token.level == 0 and level <= _DEEPEST and not _is_indented(token, lines):
            above = tuple(heading for heading in drafts[-1].above if heading.level < level)
            drafts.append(_Draft((*above, _Heading(level, text, anchor))))
        else:
            plain = _with_text(inline, text)
            drafts[-1].tokens += [token, plain, tokens[at + 2]]
        at += 3
    return drafts


def _with_text(inline: Token, text: str) -> Token:
    """The inline token with this text and no marks."""
    return Token("inline", "", 0, map=inline.map, level=inline.level, content=text, children=[])


def _is_indented(token: Token, lines: Sequence[str]) -> bool:
    """Indented by four or more: code in plain Markdown, so not a heading that opens a section."""
    line = lines[token.map[0]] if token.map and token.map[0] < len(lines) else ""
    return len(line.expandtabs(_CODE_INDENT)) - len(line.expandtabs(_CODE_INDENT).lstrip(" ")) >= _CODE_INDENT


def _section(draft: _Draft, titled: _Heading | None) -> Section:
    above = tuple(heading for heading in draft.above if heading is not titled)
    name = "/".join(heading.anchor or "-" for heading in above) or TOP
    return Section(
        _short(name),
        tuple(heading.text for heading in above),
        above[-1].anchor or None if above else None,
        tuple(blocks_of(draft.tokens)),
    )


def _joined(sections: Sequence[Section], drafts: Sequence[_Draft], title: str, setting: Setting) -> list[Section]:
    """Small sections appended to the one before them where both fit into one chunk; empty ones only lend their path."""
    joined: list[Section] = []
    costs = [_cost(section, setting) for section in sections]
    room = 0
    for index, section in enumerate(sections):
        leads = index + 1 < len(sections) and len(drafts[index + 1].above) > len(drafts[index].above)
        if not section.blocks and (leads or not section.path):
            continue
        small = costs[index] < SMALL and not _starts(costs[index : index + 2], sections[index : index + 2])
        if joined and small:
            blocks = section.blocks
            if section.path:
                blocks = (Block(f"{'#' * drafts[index].above[-1].level} {section.path[-1]}", leads=True), *blocks)
            weight = weight_of(blocks, setting)
            if weight <= room:
                joined[-1] = replace(joined[-1], blocks=(*joined[-1].blocks, *blocks))
                room -= weight
                continue
        joined.append(section)
        head = " > ".join([title, *section.path])
        long = costs[index] >= setting.limit
        room = 0 if long else setting.limit - tokens_of(f"{head}\n\n", setting) - weight_of(section.blocks, setting)
    return joined


def _starts(costs: Sequence[int], sections: Sequence[Section]) -> bool:
    """Whether a small section starts a chunk all the same, with the small one after it, so that it is small no more.

    In a long run of small sections some do, by their own name. So an edit moves the borders only up to the next of
    these, and not through the whole run.
    """
    followed = len(costs) > 1 and costs[1] < SMALL <= sum(costs)
    return followed and _is_border(sections[0].name) and not _is_border(sections[1].name)


def _is_border(name: str) -> bool:
    return hashlib.sha256(name.encode("utf-8")).digest()[0] % _BORDERS == 0


def _cost(section: Section, setting: Setting) -> int:
    """Tokens of the section's text; of a long one only that it is long."""
    text = "".join(block.glue + block.whole for block in section.blocks)
    if len(text) > setting.limit * _MOST_CHARACTERS_A_TOKEN:
        return setting.limit
    return tokens_of(text, setting)


def _bare(text: str) -> str:
    """A title without the marks around code: front matter and heading may differ in them."""
    return text.replace("`", "").casefold()


def _short(name: str) -> str:
    """A part name of bounded length."""
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}~{hashlib.sha256(name.encode('utf-8')).hexdigest()[:12]}"


def _unique(sections: Sequence[Section]) -> list[Section]:
    """Explicit ids may repeat; part names must not."""
    seen: dict[str, int] = {}
    unique: list[Section] = []
    for section in sections:
        seen[section.name] = seen.get(section.name, 0) + 1
        again = seen[section.name]
        unique.append(section if again == 1 else replace(section, name=f"{section.name}~again{again}"))
    return unique
