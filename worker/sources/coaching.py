"""Coaching tips: authored as chunks (one tip, drill or progression a document), so kept as they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from brain.knowledge.chunk import Metadata
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.visibility import coaching_is_public
from worker.model import DocKey, Document, Shaped
from worker.sources.parts import parts_of
from worker.sources.source import Setting
from worker.sources.split import Block


@dataclass(frozen=True, slots=True)
class Coaching:
    """The coaching collection: `title`, `text`, `sport`, `skillLevel`, `topic`, `status`."""

    collection: str = "coaching"
    chunker_version: int = 2

    def neighbours(self, document: Document) -> Sequence[DocKey]:  # noqa: ARG002 - the Source protocol
        """None."""
        return ()

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Visible when `status` is "published" or missing."""
        if not coaching_is_public(document):
            return Shaped()
        fields = Fields(document)
        title, text = fields.line("title"), fields.text("text")
        if not text:
            return Shaped(oddities=fields.oddities)
        if not title:
            fields.note("no_title")
        metadata = Metadata(
            "coaching",
            title or "Coaching tip",
            fields.sport("sport"),
            None,
            {"skillLevel": fields.label("skillLevel"), "topic": fields.label("topic")},
        )
        return Shaped(tuple(parts_of(title, [Block(text)], metadata, setting, fields)), oddities=fields.oddities)
