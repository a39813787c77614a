"""Riders: the editorial pages about athletes. Only published ones may be found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from brain.knowledge.chunk import Metadata
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.links import rider_path
from brain.knowledge.domain.visibility import rider_is_public
from worker.model import DocKey, Document, Shaped
from worker.sources.parts import listing, paragraphs, parts_of, sports_told
from worker.sources.source import Setting


@dataclass(frozen=True, slots=True)
class Riders:
    """The riders collection."""

    collection: str = "riders"
    chunker_version: int = 3

    def neighbours(self, document: Document) -> Sequence[DocKey]:  # noqa: ARG002 - the Source protocol
        """None."""
        return ()

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Visible when `reviewStatus` is "published"."""
        if not rider_is_public(document):
            return Shaped()
        fields = Fields(document)
        name, biography = fields.line("canonicalName"), fields.text("biography")
        if not (name or biography):
            return Shaped(oddities=fields.oddities)
        if not name:
            fields.note("no_title")
        name = name or "A rider"
        stance = fields.line("stance")
        blocks = [
            *sports_told(fields.sports("primarySport")),
            *listing("Disciplines", fields.lines("disciplines")),
            *listing("Stance", [stance] if stance else []),
            *listing("Signature tricks", _tricks(fields)),
            *listing("Sponsors", fields.lines("sponsors")),
            *listing("Also known as", fields.lines("aliases")),
            *paragraphs(biography),
        ]
        metadata = Metadata("rider", name, fields.sport("primarySport"), rider_path(fields))
        return Shaped(tuple(parts_of(f"{name} (rider)", blocks, metadata, setting, fields)), oddities=fields.oddities)


def _tricks(fields: Fields) -> list[str]:
    """Signature tricks: strings, or the older objects, of which the name alone is told."""
    value = fields.raw("signatureTricks")
    if not isinstance(value, list):
        return fields.lines("signatureTricks")
    entries = cast("list[object]", value)
    names = [
        cast("Mapping[str, object]", entry).get("name") if isinstance(entry, Mapping) else entry for entry in entries
    ]
    return Fields({"names": names}).lines("names")
