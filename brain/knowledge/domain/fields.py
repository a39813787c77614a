"""Reading fields of any type: sensible text or nothing, never an exception.

Source documents are checked by nobody: any field may be missing, null, a number, an object, HTML, a string where an
array is expected. `Fields` reads one document and remembers what was odd about it in a closed set of words.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, cast, get_args

from bson import Decimal128

from brain.knowledge.domain.clean import clean
from brain.knowledge.sports import canonical_sport, is_known

Oddity = Literal[
    "wrong_type",  # a value that holds no text (a boolean, an id, bytes) was left out
    "number_for_text",  # a number was written out
    "object_for_text",  # the text was taken out of an object
    "array_for_text",  # the items of an array became one text
    "text_for_array",  # a string became the items of a list, one a line
    "object_for_array",  # likewise an object
    "too_deep",  # nested deeper than MOST_DEPTH: left out
    "too_many_edges",  # more neighbours than are shown
    "bad_edge",  # a progression edge without a readable trick id
    "bad_date",  # a date that is none
    "unknown_sport",  # a sport outside the vocabulary
    "no_title",  # a document without a name
    "long_title",  # a title that was shortened where it is repeated on every part
    "long_word",  # a word that was broken into lines
    "diagram",  # the source of a diagram, which is no text
]
ODDITIES: Final[tuple[str, ...]] = get_args(Oddity)

MOST_DEPTH: Final = 4
"""How deeply nested a value may be and still be read."""
LONGEST_NUMBER: Final = 40
"""Digits; a longer number is no text."""
LONGEST_LABEL: Final = 200
"""Characters of a value that is kept as metadata (difficulty, topic …)."""
_TEXT_KEYS: Final = ("name", "title", "label", "text", "step", "tip", "description", "content", "body", "value", "note")
"""Where an object keeps its words, in the order in which they are read."""
_LIST_MARK: Final = re.compile(r"^(?:[-*•]|\d{1,3}[.)])\s+")
_SLUG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,199}")


class Fields:
    """The fields of one document (or of an object in it), read leniently; `oddities` collects what was odd."""

    def __init__(self, document: Mapping[str, object], oddities: set[Oddity] | None = None) -> None:
        self._document = document
        self._found = set[Oddity]() if oddities is None else oddities

    @property
    def oddities(self) -> tuple[Oddity, ...]:
        """What was odd so far, sorted."""
        return tuple(sorted(self._found))

    def note(self, oddity: Oddity) -> None:
        """Remember an oddity."""
        self._found.add(oddity)

    def raw(self, name: str) -> object:
        """The value as stored; None when it is missing."""
        return self._document.get(name)

    def text(self, *names: str) -> str:
        """The cleaned text of the first of these fields that has any, else ''."""
        return next((text for name in names if (text := self._text(self.raw(name), 0))), "")

    def line(self, *names: str) -> str:
        """Likewise on one line."""
        return " ".join(self.text(*names).split())

    def label(self, name: str) -> str | None:
        """A short value for metadata: one line of at most LONGEST_LABEL characters, or None."""
        return self.line(name)[:LONGEST_LABEL].strip() or None

    def items(self, *names: str) -> list[str]:
        """The texts of the first of these lists that has any, blanks dropped."""
        return next((items for name in names if (items := self._items(self.raw(name)))), list[str]())

    def lines(self, *names: str) -> list[str]:
        """Likewise, each on one line and each once."""
        return list(dict.fromkeys(" ".join(item.split()) for item in self.items(*names)))

    def words(self, name: str) -> list[str]:
        """The words of a field that may be an array or one comma-separated string, each once."""
        value = self.raw(name)
        texts = clean(value).split("\n") if isinstance(value, str) else self.lines(name)
        return list(dict.fromkeys(word for text in texts for part in text.split(",") if (word := part.strip())))

    def child(self, name: str) -> "Fields":
        """An object inside the document; an empty one when it is no object."""
        value = self.raw(name)
        if isinstance(value, Mapping):
            return Fields(cast("Mapping[str, object]", value), self._found)
        if value is not None:
            self.note("wrong_type")
        return Fields({}, self._found)

    def children(self, name: str) -> Iterator["Fields"]:
        """The objects of an array inside the document; what is no object is passed over."""
        value = self.raw(name)
        if isinstance(value, list | tuple):
            for item in cast("Sequence[object]", value):
                if isinstance(item, Mapping):
                    yield Fields(cast("Mapping[str, object]", item), self._found)
                elif item is not None:
                    self.note("wrong_type")
        elif value is not None:
            self.note("wrong_type")

    def slug(self, name: str) -> str | None:
        """A value that can stand in a path as it is, or None."""
        value = self.raw(name)
        return value if isinstance(value, str) and _SLUG.fullmatch(value) else None

    def date(self, *names: str) -> datetime | None:
        """The first of these fields that holds a date, aware and in UTC; BSON dates and ISO strings are read."""
        for name in names:
            value = self.raw(name)
            if value is None or value == "":
                continue
            found = _date(value)
            if found is not None:
                return found
            self.note("bad_date")
        return None

    def sports(self, *names: str) -> list[str]:
        """The sports of a field (a string or an array), canonical where known, each once, in their order.

        What holds no letter is no sport.
        """
        found: dict[str, None] = {}
        for value in next((words for name in names if (words := self.words(name))), list[str]()):
            sport = canonical_sport(value[:LONGEST_LABEL])
            if not is_known(sport):
                self.note("unknown_sport")
            if sport is not None and any(map(str.isalpha, sport)):  # a number or a date names none
                found[sport] = None
        return list(found)

    def sport(self, *names: str) -> str | None:
        """The first known sport of these fields, else the first word that stands there, lower-cased, or None."""
        found = [sport for name in names for sport in self.sports(name)]
        return next(filter(is_known, found), found[0] if found else None)

    def _text(self, value: object, depth: int) -> str:
        if isinstance(value, str):
            return clean(value)
        if value is None:
            return ""
        if isinstance(value, Mapping | list | tuple):
            return self._nested(cast("Mapping[str, object] | Sequence[object]", value), depth)
        if isinstance(value, datetime):
            return value.date().isoformat()
        if isinstance(value, int | float | Decimal128) and not isinstance(value, bool):
            return self._number(value)
        return self._nothing("wrong_type")

    def _nested(self, value: Mapping[str, object] | Sequence[object], depth: int) -> str:
        if depth >= MOST_DEPTH:
            return self._nothing("too_deep")
        if isinstance(value, Mapping):
            self.note("object_for_text")
            texts = [self._text(value[key], depth + 1) for key in _TEXT_KEYS if key in value]
            return ": ".join(dict.fromkeys(filter(None, texts)))
        self.note("array_for_text")
        return "\n".join(filter(None, (self._text(item, depth + 1) for item in value)))

    def _items(self, value: object) -> list[str]:
        if isinstance(value, list | tuple):
            texts = (self._text(item, 1) for item in cast("Sequence[object]", value))
        elif isinstance(value, Mapping):
            self.note("object_for_array")
            members = cast("Mapping[str, object]", value)
            named = [members[key] for key in members if key.isdecimal()]  # an array that an encoder made an object
            texts = (self._text(item, 1) for item in named) if named else iter([self._text(members, 0)])
        else:
            text = self._text(value, 0)
            if text:
                self.note("text_for_array")
            texts = iter(text.split("\n"))
        return [item for text in texts if (item := _LIST_MARK.sub("", text.strip()).strip())]

    def _number(self, value: float | Decimal128) -> str:
        self.note("number_for_text")
        if isinstance(value, Decimal128):
            exact = value.to_decimal()
            text = str(exact) if exact.is_finite() else ""
        elif isinstance(value, float):
            text = f"{value:g}" if math.isfinite(value) else ""
        else:
            text = str(int(value)) if value.bit_length() <= 2 * LONGEST_NUMBER else ""
        return text if text and len(text) <= LONGEST_NUMBER else self._nothing("wrong_type")

    def _nothing(self, oddity: Oddity) -> str:
        self.note(oddity)
        return ""


def is_word(value: object, word: str) -> bool:
    """Whether the value is this word, whatever its case and the spaces around it."""
    return isinstance(value, str) and value.strip().lower() == word


def _date(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)  # BSON dates are UTC; the driver leaves the zone out
    try:
        return value.astimezone(UTC)
    except OverflowError:
        return None
