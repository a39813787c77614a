"""The anchors that Docusaurus gives to headings, so that a chunk links to its section.

Docusaurus takes an explicit `{#id}` as it is and otherwise asks github-slugger: lower case, everything outside letters,
marks, digits, connectors, space and hyphen dropped, each space one hyphen, repeated slugs numbered `-1`, `-2` …
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

_EXPLICIT: Final = re.compile(r"\s*\{#([^{}\s]+)\}\s*$")
_KEPT: Final = frozenset(("Ll", "Lm", "Lo", "Lt", "Lu", "Mc", "Me", "Mn", "Nd", "Nl", "Pc"))
_LETTER_SYMBOLS: Final = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Circled and squared letters: symbols by category, yet alphabetic to Unicode."""


@lru_cache(maxsize=4096)
def _stays(character: str) -> bool:
    if character in " -" or unicodedata.category(character) in _KEPT:
        return True
    code = ord(character)
    return any(first <= code <= last for first, last in _LETTER_SYMBOLS)


def slug(text: str) -> str:
    """The slug of a heading's text, repeated or not."""
    return "".join(filter(_stays, text.lower())).replace(" ", "-")


def explicit_id(text: str) -> tuple[str, str | None]:
    """A heading's text without its `{#id}`, and that id."""
    match = _EXPLICIT.search(text)
    return (text[: match.start()], match.group(1)) if match else (text, None)


class Slugger:
    """The slugs of one page."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def slug(self, text: str) -> str:
        """The slug of the next heading with this text."""
        first = result = slug(text)
        while result in self._seen:
            self._seen[first] += 1
            result = f"{first}-{self._seen[first]}"
        self._seen[result] = 0
        return result
