"""Spots: where it is, what for, what it is like. Only approved ones may be found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from brain.knowledge.chunk import Metadata
from worker.model import DocKey, Document, Shaped
from worker.sources.odd import Fields, hex_id, name_slug
from worker.sources.parts import listing, paragraphs, parts_of, sports_told
from worker.sources.source import Setting

_NO_WORDS: Final = ("", "other", "none")


@dataclass(frozen=True, slots=True)
class Spots:
    """The spots collection. Ratings, photos and place caches change often and say nothing here: they are not read."""

    collection: str = "spots"
    chunker_version: int = 2

    def neighbours(self, document: Document) -> Sequence[DocKey]:  # noqa: ARG002 - the Source protocol
        """None."""
        return ()

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Visible when `approvalStatus` is "approved"."""
        if document.get("approvalStatus") != "approved":
            return Shaped()
        fields = Fields(document)
        name = fields.line("name")
        if not name:
            fields.note("no_title")
        place = ", ".join(filter(None, (fields.line(part) for part in ("city", "state", "country"))))
        kind = _kind(fields)
        sports = fields.sports("sportTypes")
        description = fields.text("description")
        if not (name or description):
            return Shaped(oddities=fields.oddities)
        title = name or "A spot"
        blocks = [
            *paragraphs(f"{kind.capitalize()} in {place}" if place else kind.capitalize()),
            *sports_told(sports),
            *listing("Features", fields.words("tags")),
            *listing("Also known as", fields.lines("aliases")),
            *paragraphs(description),
        ]
        metadata = Metadata("spot", title, fields.sport("sportTypes"), _url(fields, name))
        head = f"{title} ({place})" if place else title
        return Shaped(tuple(parts_of(head, blocks, metadata, setting, fields)), oddities=fields.oddities)


def _kind(fields: Fields) -> str:
    """What it is ("skatepark", "street spot") from `parkType`, else `category`."""
    park = fields.line("parkType").replace("_", " ").lower()
    if park not in _NO_WORDS:
        return park
    category = fields.line("category").lower()
    return f"{category} spot" if category not in _NO_WORDS else "spot"


def _url(fields: Fields, name: str) -> str | None:
    """The three-part link that works (domain fact sheet, section 4); `/spots/{id}` is the page of a state."""
    slug, identity = name_slug(name), hex_id(fields.raw("_id"))
    state = fields.line("state").lower() or "unknown"
    return f"/spots/{quote(state, safe='')}/{slug}?id={identity}" if slug and identity else None
