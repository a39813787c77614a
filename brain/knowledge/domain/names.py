"""Names that people type: the same name in two spellings, and patterns for the database that hold no more than text."""

import re
import unicodedata
from typing import Any, Final

from brain.knowledge.domain.clean import one_line

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


def literal(text: str) -> str:
    """The text as a regular expression that matches it and nothing else."""
    return re.escape(one_line(text)[:LONGEST_PATTERN])


def contains(text: str) -> dict[str, Any]:
    """The condition that a field contains this text, in either case."""
    return {"$regex": literal(text), "$options": "i"}


def is_exactly(text: str) -> dict[str, Any]:
    """The condition that a field is this text, in either case, but for blanks around it."""
    return {"$regex": rf"^\s*{literal(text)}\s*$", "$options": "i"}
