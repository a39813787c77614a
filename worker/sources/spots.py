"""Spots: where it is, what for, what it is like. Only approved ones may be found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from brain.knowledge.chunk import Metadata
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.links import spot_path
from brain.knowledge.domain.visibility import spot_is_public
from worker.model import DocKey, Document, Shaped
from worker.sources.parts import listing, paragraphs, parts_of, sports_told
from worker.sources.source import Setting

_NO_WORDS: Final = ("", "other", "none")


@dataclass(frozen=True, slots=True)
class Spots:
    """The spots collection. Ratings, photos and place caches change often and say nothing here: they are not read."""

    collection: str = "spots"
    chunker_version: int = 3

    def neighbours(self, document: Document) -> Sequence[DocKey]:  # noqa: ARG002 - the Source protocol
        """None."""
        return ()

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Visible when `approvalStatus` is "approved"."""
        if not spot_is_public(document):
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
        metadata = Metadata("spot", title, fields.sport("sportTypes"), spot_path(fields))
        head = f"{title} ({place})" if place else title
        return Shaped(tuple(parts_of(head, blocks, metadata, setting, fields)), oddities=fields.oddities)


def _kind(fields: Fields) -> str:
    """What it is ("skatepark", "street spot") from `parkType`, else `category`."""
    park = fields.line("parkType").replace("_", " ").lower()
    if park not in _NO_WORDS:
        return park
    category = fields.line("category").lower()
    return f"{category} spot" if category not in _NO_WORDS else "spot"
