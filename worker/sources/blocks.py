"""Markdown tokens as blocks of readable text: images are their alternative text, lists keep their marks.

A link is its text, and behind it its place when that is a path of the site: "the guide (/docs/guide)". docs-sync has
resolved those; relative ones lead nowhere known, and addresses elsewhere are not ours to recommend.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from markdown_it.token import Token

from worker.sources.mdx import GAP
from worker.sources.split import Block

_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,30}")
_DIAGRAMS: Final = ("mermaid",)
_SPACES: Final = re.compile(f" *{GAP}[ {GAP}]*| {{2,}}")
_SITE_PATH: Final = re.compile(r"/(?!/)[^\s()]{0,500}")
_FILE: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_TICKS: Final = re.compile(r"`{3,}")


def inline_text(token: Token, *, plain: bool = False, links: bool = False) -> str:
    """The text of an inline token; `plain` leaves out the marks around code and keeps line breaks, as slugs want it.

    `links` tells the site's paths behind the words that link to them.
    """
    if not token.children:
        return token.content
    return "".join(_inline(token.children, plain=plain, links=links)).strip()


def _inline(children: Sequence[Token], *, plain: bool, links: bool = False) -> Iterator[str]:
    place = ""
    for child in children:
        match child.type:
            case "code_inline":
                yield child.content if plain else f"`{child.content}`"
            case "softbreak":
                yield "\n" if plain else " "
            case "hardbreak":
                yield "\n"
            case "image":
                yield "".join(_inline(child.children, plain=plain)) if child.children else child.content
            case "link_open" if links:
                place = _site_path(child.attrs.get("href"))
            case "link_close":
                yield f" ({place})" if place else ""
                place = ""
            case _:  # text; empty for the marks of links and emphasis
                yield child.content.replace(GAP, "") if plain else _SPACES.sub(" ", child.content)


def _site_path(href: object) -> str:
    """The target of a link when it is a page of the site, else ''."""
    known = isinstance(href, str) and _SITE_PATH.fullmatch(href) and not _FILE.search(href.partition("#")[0])
    return str(href) if known else ""


def blocks_of(tokens: Sequence[Token]) -> list[Block]:
    """The blocks of a run of complete top-level tokens."""
    return _Renderer(tokens).container("")


class _Renderer:
    """A walk over tokens; containers call each other, as deep as the parser allows."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def container(self, until: str) -> list[Block]:
        blocks: list[Block] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.type == until:
                break
            match token.type:
                case "inline":
                    blocks += _paragraph(inline_text(token, links=True))
                case "heading_open":
                    text = inline_text(self._tokens[self._at])
                    self._at += 2
                    mark = token.markup if token.markup.startswith("#") else "##"
                    blocks += [replace(block, leads=True) for block in _paragraph(f"{mark} {text}")]
                case "fence" | "code_block":
                    blocks += _fence(token)
                case "bullet_list_open" | "ordered_list_open":
                    blocks += self._list(token)
                case "blockquote_open":
                    blocks += self.container("blockquote_close")
                case "table_open":
                    blocks += self._table()
                case _:
                    pass
        return blocks

    def _list(self, opening: Token) -> list[Block]:
        closing = opening.type.replace("_open", "_close")
        start = opening.attrs.get("start", 1)
        number = start if isinstance(start, int) else 1
        blocks: list[Block] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.type == closing:
                break
            if token.type == "list_item_open":
                mark = f"{number}. " if opening.type == "ordered_list_open" else "- "
                number += 1
                blocks += _item(mark, self.container("list_item_close"))
        if blocks:
            blocks[0] = replace(blocks[0], glue="\n\n")
        return blocks

    def _table(self) -> list[Block]:
        rows: list[list[str]] = []
        head = 0
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            match token.type:
                case "table_close":
                    break
                case "tr_open":
                    rows.append([])
                case "inline":
                    rows[-1].append(" ".join(inline_text(token, links=True).split()))
                case "thead_close":
                    head = len(rows)
                case _:
                    pass
        lines = [f"| {' | '.join(row)} |" for row in rows]
        if len(lines) <= head:
            return _paragraph("\n".join(lines))
        rule = f"|{' --- |' * len(rows[0])}"
        return [Block("\n".join(lines[head:]), opener="\n".join([*lines[:head], rule, ""]))]


def _paragraph(text: str) -> list[Block]:
    return [Block(text)] if text.strip() else []


def is_diagram(token: Token) -> bool:
    """Whether this is the source of a diagram."""
    return token.type == "fence" and _language(token).lower() in _DIAGRAMS


def _language(token: Token) -> str:
    match = _LANGUAGE.match(token.info.strip())
    return match.group() if match else ""


def _fence(token: Token) -> list[Block]:
    """Code with its language; a diagram's source is no text."""
    language = _language(token)
    code = token.content.rstrip("\n")
    if is_diagram(token) or not code.strip():
        return []
    ticks = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(code))])
    return [Block(code, opener=f"{ticks}{language}\n", closer=f"\n{ticks}")]


def _item(mark: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks of a list item: the mark before the first line, everything else indented by its width."""
    indent = " " * len(mark)
    shifted: list[Block] = []
    for index, block in enumerate(blocks):
        lines = block.whole.split("\n")
        first = mark if index == 0 else indent
        if not block.opener:
            text = "\n".join([first + lines[0], *(indent + line if line else line for line in lines[1:])])
            shifted.append(Block(text, "\n"))
            continue
        opener = first + block.opener.replace("\n", f"\n{indent}")
        text = block.text.replace("\n", f"\n{indent}")
        closer = block.closer.replace("\n", f"\n{indent}")
        shifted.append(Block(text, "\n", opener, closer))
    return shifted
