"""From blocks to the parts of a document: the head on every part, stable names, bounded titles."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from brain.knowledge.chunk import Metadata
from brain.knowledge.domain.fields import Fields
from worker.errors import UnreadableDocument
from worker.model import Part
from worker.sources.source import Setting
from worker.sources.split import Block, fill, has_long_word, head_line, most_parts

LONGEST_TITLE: Final = 300
"""Characters of the title in a chunk's metadata; a longer one is told whole in the text."""
FULL: Final = "full"
"""The name of the part that holds a whole document."""


def parts_of(head: str, blocks: Iterable[Block], metadata: Metadata, setting: Setting, fields: Fields) -> list[Part]:
    """The document as one part, "full", or as "full", "full-2" … where it is too long for one."""
    texts = texts_of(head, list(blocks), setting, fields)
    return named(FULL, texts, short_title(metadata, fields))


def texts_of(head: str, blocks: Sequence[Block], setting: Setting, fields: Fields) -> list[str]:
    """The texts that hold these blocks, each under the head; the head alone when there are none."""
    line, shortened = head_line(head, setting)
    if shortened:
        fields.note("long_title")
        blocks = [Block(head), *blocks]
    if any(has_long_word(block.text) for block in blocks):
        fields.note("long_word")
    return fill(line, blocks, setting) or ([line] if line else [])


def named(stem: str, texts: Sequence[str], metadata: Metadata, mark: str = "-") -> list[Part]:
    """Parts named `stem`, `stem-2`, `stem-3` …; `mark` stands before the number."""
    return [
        Part(stem if number == 1 else f"{stem}{mark}{number}", text, metadata)
        for number, text in enumerate(texts, start=1)
    ]


def short_title(metadata: Metadata, fields: Fields) -> Metadata:
    """The metadata with a title of at most LONGEST_TITLE characters."""
    if len(metadata.title) <= LONGEST_TITLE:
        return metadata
    fields.note("long_title")
    return replace(metadata, title=f"{metadata.title[: LONGEST_TITLE - 1].rstrip()}…")


def at_most(parts: Sequence[Part], setting: Setting) -> tuple[Part, ...]:
    """The parts; raises UnreadableDocument when there are more than a document may have."""
    if len(parts) > (most := most_parts(setting.limit)):
        reason = f"more than {most} chunks"
        raise UnreadableDocument(reason)
    return tuple(parts)


def listing(label: str, items: Sequence[str]) -> list[Block]:
    """The items after a label, as one block; nothing when there are none."""
    return [Block(f"{label}: {', '.join(items)}", "\n")] if items else []


def sports_told(sports: Sequence[str]) -> list[Block]:
    """The sports where there are several: the metadata holds one. One alone is not told: its change embeds nothing."""
    return listing("Sports", sports) if len(sports) > 1 else []


def paragraphs(*texts: str) -> list[Block]:
    """Each text that says something as a block."""
    return [Block(text) for text in texts if text]
