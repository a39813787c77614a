"""Tricks: one chunk a trick, split by field with the name on every part when it is too long for one.

A field under SMALL tokens joins the one before it where both fit, so that no part is a name and three words; a part is
named after its first field.

The text names the neighbours in the progression (prerequisites, next steps) by their current names. Only edges whose
research status is reviewed or published are shown, as on the site. Sport, difficulty and slug are metadata and
not in the text, so that a change of one of them embeds nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from brain.knowledge.chunk import Metadata
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import hex_id
from brain.knowledge.domain.links import trick_path
from brain.knowledge.domain.progression import Edge, edges
from worker.model import DocKey, Document, Part, Shaped
from worker.sources.parts import FULL, at_most, named, short_title, texts_of
from worker.sources.source import Setting
from worker.sources.split import SMALL, Block, tokens_of

COLLECTION: Final = "trickipedia"
_MOST_A_TOKEN: Final = 16  # characters; a longer text is not small, so its end need not be counted


@dataclass(frozen=True, slots=True)
class _Section:
    """One field of the text: its part name, its label, its blocks."""

    name: str
    label: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Trickipedia:
    """The canonical trick catalogue."""

    collection: str = COLLECTION
    chunker_version: int = 3

    def neighbours(self, document: Document) -> Sequence[DocKey]:
        """The tricks named in the text, each once."""
        fields = Fields(document)
        shown = chain(edges(fields, "prerequisites"), edges(fields, "nextSteps"))
        return list(dict.fromkeys(DocKey.of(COLLECTION, edge.target) for edge in shown))

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Every trick is visible; one without any words says nothing."""
        fields = Fields(document)
        name = fields.line("name")
        sections = list(_sections(fields, setting))
        refs = tuple(self.neighbours(document))
        face = _face(fields)
        faces = {key: _face(Fields(setting.neighbours[key])) for key in refs if key in setting.neighbours}
        if not name:
            fields.note("no_title")
            if not sections:
                return Shaped(refs=refs, face=face, oddities=fields.oddities, faces=faces)
        metadata = short_title(_metadata(fields, name), fields)
        parts = _parts(name or "A trick", sections, metadata, setting, fields)
        return Shaped(at_most(parts, setting), refs, face, None, fields.oddities, faces)


def _metadata(fields: Fields, name: str) -> Metadata:
    extra = {"trickName": name[:300], "trickId": hex_id(fields.raw("_id")), "difficulty": fields.label("difficulty")}
    return Metadata("trick", name or "A trick", fields.sport("category", "sportTypes"), trick_path(fields), extra)


def _parts(head: str, sections: Sequence[_Section], metadata: Metadata, setting: Setting, fields: Fields) -> list[Part]:
    """The trick as one part, or split by field where that is too long."""
    texts = texts_of(head, _labelled(sections), setting, fields)
    if len(texts) == 1 or not sections:
        return named(FULL, texts, metadata)
    parts: list[Part] = []
    for first, *others in _grouped(head, sections, setting):
        under = f"{head}: {first.label}" if first.label else head
        blocks = [*first.blocks, *_labelled(others)]
        parts += named(first.name, texts_of(under, blocks, setting, fields), metadata)
    return parts


def _labelled(sections: Sequence[_Section]) -> list[Block]:
    """The blocks of these fields, each field's label before its first one."""
    blocks: list[Block] = []
    for section in sections:
        first, *others = section.blocks
        blocks += [Block(f"{section.label}:\n{first.text}") if section.label else first, *others]
    return blocks


def _grouped(head: str, sections: Sequence[_Section], setting: Setting) -> list[list[_Section]]:
    """The fields by part: a small one joins the one before it where both fit."""
    room = setting.limit - tokens_of(f"{head}: {sections[0].label}", setting)
    groups: list[list[_Section]] = []
    used = 0
    for section in sections:
        cost = tokens_of("\n".join(block.text for block in _labelled([section]))[: room * _MOST_A_TOKEN], setting)
        if groups and cost < SMALL and used + cost <= room:
            groups[-1].append(section)
            used += cost
        else:
            groups.append([section])
            used = cost
    return groups


def _sections(fields: Fields, setting: Setting) -> Iterator[_Section]:
    """The fields that have something to say, in the order in which they are told."""
    description = list(filter(None, [fields.text("description")]))
    steps = [f"{number}. {step}" for number, step in enumerate(fields.items("steps"), start=1)]
    aliases = fields.lines("aliases")
    told = (
        ("description", "", description, "\n\n"),
        ("steps", "Steps", steps, "\n"),
        ("tips", "Tips", _dashed(fields.items("tips")), "\n"),
        ("mistakes", "Common mistakes", _dashed(fields.items("commonMistakes")), "\n"),
        ("safety", "Safety", _dashed(fields.items("safety")), "\n"),
        ("aliases", "Also known as", [", ".join(aliases)] if aliases else [], "\n"),
        (
            "prerequisites",
            "Learn these first",
            _neighbour_lines(edges(fields, "prerequisites"), setting),
            "\n",
        ),
        (
            "next-steps",
            "Next steps after it",
            _neighbour_lines(edges(fields, "nextSteps"), setting),
            "\n",
        ),
    )
    for name, label, texts, glue in told:
        if texts:
            yield _Section(name, label, [Block(text, glue if at else "\n\n") for at, text in enumerate(texts)])


def _dashed(items: Sequence[str]) -> list[str]:
    return [f"- {item}" for item in items]


def _neighbour_lines(shown: Sequence[Edge], setting: Setting) -> list[str]:
    """One line a neighbour that exists: its current name, strength and reason."""
    lines: list[str] = []
    for edge in shown:
        name = _face(Fields(setting.neighbours.get(DocKey.of(COLLECTION, edge.target), {})))
        if name is None:
            continue
        line = f"- {name} ({edge.strength})" if edge.strength else f"- {name}"
        lines.append(f"{line}: {edge.reason}" if edge.reason else line)
    return lines


def _face(fields: Fields) -> str | None:
    """What the texts of other tricks say of this one: its name, or None when it has none."""
    return Fields({"name": fields.raw("name")}).line("name")[:300] or None
