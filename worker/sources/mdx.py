"""Docusaurus pages as plain Markdown: what only MDX understands is dropped or told in words.

Imports, exports and comments go; JSX and HTML tags go and their text stays; admonitions (`:::note Title`) become a line
of their own; a tab tells its label. Fenced code and code spans are never touched: fences are found first by a real
parse, so that fences in lists, in quotes and inside tags count too.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from markdown_it import MarkdownIt

from brain.knowledge.domain.clean import BLOCK_TAGS, INLINE_TAGS

LONGEST_TAG: Final = 20_000
"""Characters of one JSX tag with its attributes."""
GAP: Final = "\ufdd0"
"""Where a tag stood in a heading: a space to readers, nothing to the site's slugs; `scrub` takes it out of any text."""
_MOST_FAILED_TAGS: Final = 200  # after so many that do not end, "<" is a character: it keeps hostile text linear
_LONGEST_CODE_SPAN: Final = 4_000
_MARK: Final = re.compile(
    r"\\[\\`<{]"  # an escaped character
    r"|`+"  # a code span
    r"|<!--|\{/\*"  # a comment
    r"|</?(?=[A-Za-z>])"  # a tag or a fragment
    r"|\{\s*(?P<quote>['\"])(?P<string>[^'\"\n{}]{0,200})(?P=quote)\s*\}"  # {' '}
    r"|@@\s*https?://[^\s@]{1,2000}\s*@@"  # the website's embed marker
    r"|^(?P<esm>import|export)(?=[ \t{*'\"])"
    r"|^(?P<lead>[ \t>]*):{3,}(?P<admonition>[^\n]*)$",
    re.MULTILINE,
)
_TAG_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(?=[\s/>])|(?=>)")
_ESM: Final = re.compile(
    r"import\s*(?:['\"{*]|[\w$]+\s*(?:,|\s+from\b))"
    r"|export\s+(?:default|const|let|var|function|async|class|type|interface|enum)\b|export\s*[{*]"
)
_ADMONITION: Final = re.compile(r"\s*(?P<kind>[A-Za-z][\w-]*)?\s*(?P<title>.*)")
_ATTRIBUTES: Final = re.compile(r"\{[^{}]*\}\s*$")
_LABEL: Final = {name: re.compile(rf"\s{name}=(?:\{{\s*)?(?:\"([^\"]*)\"|'([^']*)')") for name in ("label", "value")}
_COMMENT_ID: Final = re.compile(r"\s*#([^\s{}]+)(?:\s.*)?", re.DOTALL)
_HEADING_START: Final = re.compile(r"[ \t>*+-]{0,40}+#{1,6}[ \t]")
_LONGEST_HEADING: Final = 2_000
_MDX_FENCE: Final = re.compile(r"(`{3,}|~{3,})mdx-code-block\b")
_ESM_ENDS: Final = {"i": (";", "'", '"'), "e": (";", "}")}
_MOST_ESM_LINES: Final = 500
_MOST_ENDLESS_ESM: Final = 20  # after so many statements that do not end, one is taken to be a line

# Blocks only, and as MDX reads them: no indented code, no HTML blocks (a fence right below a tag is a fence).
_BLOCKS: Final = MarkdownIt("commonmark").disable(["html_block", "code", "inline", "reference", "text_join"])


def plain_markdown(text: str) -> str:
    """The page without what only MDX understands. Takes scrubbed text; raises nothing."""
    if "mdx-code-block" in text:
        text = _without_mdx_fences(text)
    return _Scanner(text).run()


def _without_mdx_fences(text: str) -> str:
    """A fence marked `mdx-code-block` is no code: its two lines go, and what is between them is read as MDX."""
    kept: list[str] = []
    closing: str | None = None
    for line in text.split("\n"):
        opened = None if closing else _MDX_FENCE.match(line)
        if opened:
            closing = opened.group(1)
        elif closing and line.rstrip() == closing:
            closing = None
        else:
            kept.append(line)
    return "\n".join(kept)


def fences_of(text: str) -> list[tuple[int, int]]:
    """Where fenced code starts and ends, in characters, in order."""
    if "```" not in text and "~~~" not in text:
        return []
    starts = [0]
    starts += [match.end() for match in re.finditer("\n", text)]
    starts.append(len(text))
    last = len(starts) - 1
    return [
        (starts[min(token.map[0], last)], starts[min(token.map[1], last)])
        for token in _BLOCKS.parse(text)
        if token.type == "fence" and token.map
    ]


class _Scanner:
    """One walk over a page."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences: Sequence[tuple[int, int]] = fences_of(text)
        self._starts = [start for start, _ in self._fences]
        self._out: list[str] = []
        self._esm_end = 0
        self._failed_tags = 0
        self._endless_esm = 0
        self._endless: set[str] = set()

    def run(self) -> str:
        at = 0
        while (match := _MARK.search(self._text, at)) is not None:
            fence = self._fence_at(match.start())
            if fence is not None:
                self._out.append(self._text[at : fence[1]])
                at = max(fence[1], match.start() + 1) if fence[1] <= match.start() else fence[1]
                continue
            self._out.append(self._text[at : match.start()])
            at = self._handle(match)
        self._out.append(self._text[at:])
        return "".join(self._out)

    def _fence_at(self, place: int) -> tuple[int, int] | None:
        index = bisect_right(self._starts, place) - 1
        return self._fences[index] if index >= 0 and place < self._fences[index][1] else None

    def _handle(self, match: re.Match[str]) -> int:
        """Write what this mark becomes; where to go on."""
        start, end = match.start(), match.end()
        if match.group("admonition") is not None:
            self._out.append(_admonition(match.group("lead"), match.group("admonition")))
            return end
        if match.group("string") is not None:
            self._out.append(match.group("string"))
            return end
        if match.group("esm"):
            return self._esm(start, end)
        return self._handle_sign(match.group(), start, end)

    def _handle_sign(self, sign: str, start: int, end: int) -> int:
        """Likewise for a mark that is told by its first characters."""
        if sign[0] == "`":
            return self._code_span(start, end)
        if sign == "<!--":
            return self._comment(start, "<!--", "-->")
        if sign == "{/*":
            return self._comment(start, "{/*", "*/}")
        if sign[0] == "<":
            return self._tag(start)
        if sign[0] == "\\":
            self._out.append(sign)
        return end

    def _comment(self, start: int, opening: str, closing: str) -> int:
        end = -1 if closing in self._endless else self._text.find(closing, start + len(opening))
        if end < 0:
            self._endless.add(closing)
            self._out.append(opening)
            return start + len(opening)
        heading_id = _COMMENT_ID.fullmatch(self._text[start + len(opening) : end][:200])
        if heading_id and opening == "{/*" and self._in_heading(start):
            self._out.append(f"{{#{heading_id.group(1)}}}")
        return end + len(closing)

    def _code_span(self, start: int, end: int) -> int:
        ticks = self._text[start:end]
        limit = min(len(self._text), end + _LONGEST_CODE_SPAN)
        blank = self._text.find("\n\n", end, limit)
        limit = blank if blank >= 0 else limit
        at = end
        while (at := self._text.find(ticks, at, limit)) >= 0:
            after = at + len(ticks)
            while self._text[after : after + 1] == "`":
                after += 1
            if after - at == len(ticks):
                self._out.append(self._text[start:after])
                return after
            at = after
        self._out.append(ticks)
        return end

    def _esm(self, start: int, end: int) -> int:
        """An import or export statement at the start of a block, dropped up to its end."""
        text = self._text
        before = text[max(0, start - _LONGEST_CODE_SPAN) : start].rstrip(" \t")
        begins = start == self._esm_end or before.endswith(("\n\n", "-->\n", "*/}\n")) or not before.strip()
        if not begins or not _ESM.match(text, start):
            self._out.append(text[start:end])
            return end
        depth, at = 0, start
        first_blank: int | None = None
        for _ in range(_MOST_ESM_LINES if self._endless_esm < _MOST_ENDLESS_ESM else 1):
            line_end = text.find("\n", at)
            line_end = len(text) if line_end < 0 else line_end
            line = text[at:line_end]
            depth += sum(line.count(mark) for mark in "{([") - sum(line.count(mark) for mark in "})]")
            at = min(line_end + 1, len(text))
            following = text[at : at + 1]
            done = depth <= 0 and (line.rstrip().endswith(_ESM_ENDS[text[start]]) or following in ("", "\n"))
            if done or at >= len(text):
                self._esm_end = at
                return at
            if following == "\n" and first_blank is None:
                first_blank = at
        self._endless_esm += 1
        self._esm_end = first_blank or at
        return self._esm_end

    def _tag(self, start: int) -> int:
        text = self._text
        closing = text.startswith("</", start)
        name = _TAG_NAME.match(text, start + 1 + closing)
        end = self._tag_end(name.end()) if name and self._failed_tags < _MOST_FAILED_TAGS else None
        if name is None or end is None or not self._is_markup(name.group(), start):
            self._failed_tags += name is not None and end is None
            self._out.append(text[start : start + 1])
            return start + 1
        lowered = name.group().lower()
        if lowered in ("script", "style", "pre") and not closing:
            return self._raw_element(lowered, end)
        if name.group() == "TabItem" and not closing:
            self._out.append(self._tab_label(text[start:end], start))
        elif lowered not in INLINE_TAGS:
            self._out.append(GAP if self._in_heading(start) else " ")
        return end

    def _in_heading(self, start: int) -> bool:
        """Whether this place is on the line of a heading."""
        first = max(0, start - _LONGEST_HEADING)
        line = self._text.rfind("\n", first, start) + 1
        return (line > 0 or first == 0) and _HEADING_START.match(self._text, line, start) is not None

    def _is_markup(self, name: str, start: int) -> bool:
        """Whether this is a tag and not somebody's words, such as `Array<string>` or `<your name>`."""
        if name.lower() in INLINE_TAGS or name.lower() in BLOCK_TAGS or name.lower() in ("script", "style"):
            return True
        component = not name or name[0].isupper() or "." in name
        return component and (self._text.startswith("</", start) or not self._text[start - 1 : start].isalnum())

    def _tag_end(self, at: int) -> int | None:
        """Past the `>` that ends a tag; braces and quotes in it are skipped. None when it does not end."""
        text, depth, last = self._text, 0, min(len(self._text), at + LONGEST_TAG)
        while at < last:
            character = text[at]
            if character == ">" and not depth:
                return at + 1
            if character == "<" and not depth:
                return None
            if character in "\"'" and (not depth or text[at - 1] in "=({[, :"):
                at = text.find(character, at + 1, last)
                if at < 0:
                    return None
            elif character == "{":
                depth += 1
            elif character == "}":
                depth -= 1
                if depth < 0:
                    return None
            at += 1
        return None

    def _raw_element(self, name: str, start: int) -> int:
        """Scripts and styles go with what they hold; a `pre` becomes a fence."""
        closing = f"</{name}>"
        end = -1 if closing in self._endless else self._text.find(closing, start)
        if end < 0:
            self._endless.add(closing)
            return start
        if name == "pre":
            inner = self._text[start:end].strip("\n")
            self._out.append(f"\n~~~~~~\n{inner}\n~~~~~~\n")
        return end + len(closing)

    def _tab_label(self, tag: str, start: int) -> str:
        match = _LABEL["label"].search(tag) or _LABEL["value"].search(tag)
        label = (match.group(1) or match.group(2) or "").strip() if match else ""
        if not label:
            return " "
        before = self._text[self._text.rfind("\n", 0, start) + 1 : start]
        indent = before if not before.strip() else ""
        return f"{label}:\n\n{indent}" if not before.strip() else f"\n\n{label}:\n\n"


def _admonition(lead: str, rest: str) -> str:
    """The line that opens or closes an admonition, in words: "Note: Title"."""
    match = _ADMONITION.fullmatch(_ATTRIBUTES.sub("", rest))
    if match is None or not (match.group("kind") or match.group("title").strip()):
        return lead.rstrip()
    kind, title = match.group("kind"), match.group("title").strip()
    if title.startswith("["):
        title = title[1:].rpartition("]")[0] or title.strip("[]")
    told = ": ".join(filter(None, ((kind or "").capitalize(), title)))
    return f"{lead.rstrip()}\n{lead}{told}{'' if title else ':'}\n{lead.rstrip()}"
