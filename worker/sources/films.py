"""Films: who made it, who rides in it, when, what it is about. Hosting ids and stream addresses are never read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from brain.knowledge.chunk import Metadata
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.links import film_path
from brain.knowledge.domain.visibility import film_is_public
from worker.model import DocKey, Document, Shaped
from worker.sources.parts import listing, paragraphs, parts_of, sports_told
from worker.sources.source import Setting

_LISTS: Final = (
    ("Riders", "riders"),
    ("Directors", "directors"),
    ("Locations", "locations"),
    ("Sponsors", "sponsors"),
    ("Tags", "tags"),
)


@dataclass(frozen=True, slots=True)
class Films:
    """The couch_videos collection. Its view counter moves with every visit and is not read."""

    collection: str = "couch_videos"
    chunker_version: int = 3

    def neighbours(self, document: Document) -> Sequence[DocKey]:  # noqa: ARG002 - the Source protocol
        """None."""
        return ()

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Visible when `isPublished` is true and `type` is "film"."""
        if not film_is_public(document):
            return Shaped()
        fields = Fields(document)
        title, description = fields.line("title"), fields.text("description")
        if not (title or description):
            return Shaped(oddities=fields.oddities)
        if not title:
            fields.note("no_title")
        title = title or "A film"
        year = _year(fields)
        maker = fields.line("producedBy", "filmmaker")
        blocks = [
            *sports_told(fields.sports("sportTypes")),
            *listing("Made by", [maker] if maker else []),
            *(block for label, name in _LISTS for block in listing(label, fields.lines(name))),
            *paragraphs(description),
        ]
        metadata = Metadata("film", title, fields.sport("sportTypes"), film_path(fields))
        head = f"{title} (film, {year})" if year else f"{title} (film)"
        return Shaped(tuple(parts_of(head, blocks, metadata, setting, fields)), oddities=fields.oddities)


def _year(fields: Fields) -> str:
    """The release year; a number there is no oddity, anything that is no year is left out."""
    value = fields.raw("releaseYear")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return text if len(text) == len("2026") and text.isdecimal() else ""
