"""Documentation pages: one chunk a section, the page title and the heading path on its first line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast
from urllib.parse import quote

from brain.knowledge.chunk import Metadata
from brain.knowledge.domain.clean import scrub
from brain.knowledge.domain.fields import Fields
from worker.model import DocKey, Document, Part, Shaped
from worker.sources.front_matter import is_set, split_front_matter
from worker.sources.markdown import TOP, Page, Section, read_page
from worker.sources.parts import at_most, named, short_title, texts_of
from worker.sources.source import Setting
from worker.sources.split import Block

_LONGEST_HEADING: Final = 300  # characters of a heading in the metadata
_SPLIT_MARK: Final = "~"  # "usage/options~2": no anchor holds it, while "options-2" may be the third "Options"


@dataclass(frozen=True, slots=True)
class Docs:
    """The docs collection: `title`, `markdown`, `url`, `frontMatter`; a row written by hand may lack any of them."""

    collection: str = "docs"
    chunker_version: int = 3

    def neighbours(self, document: Document) -> Sequence[DocKey]:  # noqa: ARG002 - the Source protocol
        """None."""
        return ()

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Visible unless the front matter says draft or unlisted."""
        fields = Fields(document)
        raw = fields.raw("markdown")
        front = split_front_matter(scrub(raw) if isinstance(raw, str) else fields.text("markdown"))
        stored = fields.raw("frontMatter")
        values = {**front.values, **(cast("Mapping[str, object]", stored) if isinstance(stored, Mapping) else {})}
        if is_set(values, "draft") or is_set(values, "unlisted"):
            return Shaped()
        title = fields.line("title") or Fields(values, set()).line("title")
        page = read_page(front.body, title or None, setting)
        if page.too_deep:
            fields.note("too_deep")
        if page.diagrams:
            fields.note("diagram")
        if not page.sections:
            return Shaped(oddities=fields.oddities)
        title = title or page.heading or ""
        if not title:
            fields.note("no_title")
            title = fields.line("path") or "A page"
        url = _page_url(fields.raw("url"))
        parts: list[Part] = []
        for section in _described(page, Fields(values, set()).text("description")):
            head = " > ".join(dict.fromkeys([title, *section.path]))
            link = f"{url}#{quote(section.anchor, safe='')}" if url and section.anchor else url
            path = [heading[:_LONGEST_HEADING] for heading in section.path]
            metadata = short_title(Metadata("doc", title, None, link, {"headingPath": path}), fields)
            texts = texts_of(head, section.blocks, setting, fields)
            parts += named(section.name, texts, metadata, _SPLIT_MARK)
        return Shaped(at_most(parts, setting), oddities=fields.oddities)


def _described(page: Page, description: str) -> Sequence[Section]:
    """The sections with the page's own summary at the top, unless its text starts with the same words."""
    first, *others = page.sections
    if not description or any(block.text.startswith(description) for block in first.blocks[:1]):
        return page.sections
    if first.path in ((), (page.heading,)):
        return (replace(first, blocks=(Block(description), *first.blocks)), *others)
    return (Section(TOP, blocks=(Block(description),)), *page.sections)


def _page_url(value: object) -> str | None:
    """The page's path on the site, or None: another site's address is no path; an anchor in it is dropped."""
    if not isinstance(value, str):
        return None
    url = value.strip().partition("#")[0]
    clean = url.isprintable() and not any(c.isspace() for c in url)
    known = clean and url.startswith("/") and not url.startswith("//")
    return url if known and len(url) <= 2_000 else None  # noqa: PLR2004 - longer than any browser takes
