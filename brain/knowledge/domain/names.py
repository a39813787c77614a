"""Names that people type: the same name in two spellings, and patterns for the database that hold no more than text."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from brain.knowledge.domain.clean import one_line, scrub

LONGEST_PATTERN: Final = 200
"""Characters of a text in a pattern; what is beyond is cut, because a longer one finds nothing more."""

MOST_PATTERN: Final = 1_000
"""Characters of a pattern: the embedded database takes no more, MongoDB 32,764 bytes."""

_EVERYTHING: Final = "a pattern of nothing matches everything"
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
    """The condition that a field contains this text, whatever its case and, unless it is very long, its accents.

    Raises ValueError for blanks, which every text contains.
    """
    return {"$regex": _literal([text], "", MOST_PATTERN), "$options": "i"}


def says(names: Sequence[str]) -> dict[str, Any]:
    """The condition that a field says one of these names, as whole words: "nose press" is said by "Nose-press".

    Of many names those that a pattern has room for, the first one at any rate. Raises ValueError for blanks and for
    no names.
    """
    start, end, made = r"(?<!\w)(?:", r")(?!\w)", ""
    room = MOST_PATTERN - len(start) - len(end)
    for name in names:
        words = name[:LONGEST_PATTERN].split() or [name]
        one = _literal(words, r"[\s-]+", room - len(made) - 1)
        if len(made) + len(one) < room:
            made += f"|{one}" if made else one
    if not made:
        raise ValueError(_EVERYTHING)
    return {"$regex": f"{start}{made}{end}", "$options": "i"}


def _literal(words: Sequence[str], between: str, room: int) -> str:
    """A regular expression that matches the words and nothing else, but for accents where there is room for those."""
    plain = [scrub(word)[:LONGEST_PATTERN] for word in words]
    if not "".join(plain).strip():
        raise ValueError(_EVERYTHING)
    loose = between.join("".join(map(_alike, word)) for word in plain)
    return loose if len(loose) <= room else between.join(map(re.escape, plain))


def _alike(char: str) -> str:
    return _ALIKE.get(char) or _ALIKE.get(char.lower()) or re.escape(char)


def _letters_alike() -> dict[str, str]:
    """Each Latin letter that comes with accents, and each of those, to the class of them all: "ø" to "[oòóôõöø…]".

    In lower case, but for a capital that is not the capital of one letter (the Turkish İ).
    """
    families: dict[str, str] = {}
    for char in map(chr, (*range(0xC0, 0x250), *range(0x1EA0, 0x1EFA))):
        base = unicodedata.normalize("NFD", char.lower())[0]
        base = _STROKES.get(base, base)
        if base.isascii() and base.isalpha() and char.lower() in {char, f"{base}\u0307"}:
            families[base] = families.get(base, base) + char
    return {char: f"[{family}]" for family in families.values() for char in family}


_STROKES: Final = dict(zip("øłđħŧı", "oldhti", strict=True))
"""Letters that Unicode takes for no accented ones; collations do (as `brain.trickbook.collation`)."""
_ALIKE: Final = _letters_alike()
