"""Names that people type: the same name in two spellings, and patterns for the database that hold no more than text."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, Final

from brain.knowledge.domain.clean import one_line, scrub

LONGEST_PATTERN: Final = 200
"""Characters of a text in a pattern; what is beyond is cut, because a longer one finds nothing more."""

LONGEST_NAMES: Final = 350
"""Characters of all names in a pattern together: with their accents within the 32,764 bytes that MongoDB takes."""

_BETWEEN: Final = re.compile(r"[\s\-\u2010-\u2015_/.,;:!?'\"`\u2018-\u201d()\[\]]+")


def name_key(name: str) -> str:
    """What makes two names the same: letters and digits (and signs such as +) in lower case, one blank between words.

    Accents do not count either. "50-50 (Switch)", "50 50 switch" and "50\u201350 SWITCH" have one key; a name of
    nothing but punctuation is its own.
    """
    plain = "".join(char for char in unicodedata.normalize("NFKD", one_line(name)) if not unicodedata.combining(char))
    folded = plain.casefold()
    return _BETWEEN.sub(" ", folded).strip() or folded


def contains(text: str) -> dict[str, Any]:
    """The condition that a field contains this text, whatever its case and accents.

    Raises ValueError for blanks, which every text contains.
    """
    return {"$regex": _literal(text), "$options": "i"}


def says(names: Iterable[str]) -> dict[str, Any]:
    """The condition that a field says one of these names, as whole words: "nose press" is said by "Nose-press".

    Of many names the first ones, as far as a pattern goes. Raises ValueError for blanks and for no names.
    """
    kept, room = list[str](), LONGEST_NAMES
    for name in (name[:LONGEST_PATTERN] for name in names):
        room -= len(name)
        if room >= 0:
            kept.append(r"[\s-]+".join(map(_literal, name.split() or [name])))
    return {"$regex": rf"(?<!\w)(?:{'|'.join(kept or [_literal('')])})(?!\w)", "$options": "i"}


def _literal(text: str) -> str:
    """The text as a regular expression that matches it and nothing else, but for accents."""
    plain = scrub(text)[:LONGEST_PATTERN]
    if not plain.strip():
        message = "a pattern of nothing matches everything"
        raise ValueError(message)
    return "".join(_ALIKE.get(char) or _ALIKE.get(char.lower()) or re.escape(char) for char in plain)


def _letters_alike() -> dict[str, str]:
    """Each Latin letter that comes with accents, and each of those, to the class of them all: "ø" to "[oòóôõöø…]".

    In lower case, but for a capital that is not the capital of one letter (the Turkish İ).
    """
    families: dict[str, str] = {}
    for char in map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))):
        base = unicodedata.normalize("NFD", char.lower())[0]
        base = _STROKES.get(base, base)
        if base.isascii() and base.isalpha() and char.lower() in {char, f"{base}\u0307"}:
            families[base] = families.get(base, base) + char
    return {char: f"[{family}]" for family in families.values() for char in family}


_STROKES: Final = dict(zip("øłđħŧı", "oldhti", strict=True))
"""Letters that Unicode takes for no accented ones; collations do (as `brain.trickbook.collation`)."""
_ALIKE: Final = _letters_alike()
