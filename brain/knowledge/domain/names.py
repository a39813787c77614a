"""Names that people type: the same name in two spellings, and patterns for the database that hold no more than text."""

import re
import unicodedata
from typing import Any, Final

from brain.knowledge.domain.clean import one_line, scrub

LONGEST_PATTERN: Final = 200
"""Characters of a text in a pattern; what is beyond is cut, because a longer one finds nothing more."""

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
    """The condition that a field contains this text, in either case. Raises ValueError for blanks: all contain them."""
    plain = scrub(text)[:LONGEST_PATTERN]
    if not plain.strip():
        message = "a pattern of nothing matches everything"
        raise ValueError(message)
    return {"$regex": re.escape(plain), "$options": "i"}
