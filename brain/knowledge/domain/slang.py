"""What riders say for a spin: "back three" is a backside 360, "front 5" a frontside 540, "cab nine" a cab 900.

A spin is called by the first figure of its degrees, and the sides by half their word. Sources: BBC Sport's guide to
the Olympic snowboard events ("numbers are shortened to just the first number in the trick"; back and front for
backside and frontside), bbc.com/sport/olympics/articles/cgjwy94lx1qo; and
snomie.com/snowboard-trick-definitions-names-cork-cab.
Aliases of the catalogue come first; this covers the tricks whose editors did not think of them.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Final

_SIDES: Final[dict[str, tuple[str, ...]]] = {
    "back": ("backside", "bs"),
    "backside": ("backside", "bs"),
    "bs": ("backside", "bs"),
    "front": ("frontside", "fs"),
    "frontside": ("frontside", "fs"),
    "fs": ("frontside", "fs"),
    "cab": ("cab",),
    "switch": ("switch",),
    "fakie": ("fakie",),
    "nollie": ("nollie",),
}
_SPINS: Final[dict[str, str]] = {
    "1": "180",
    "one": "180",
    "one-eighty": "180",
    "3": "360",
    "three": "360",
    "three-sixty": "360",
    "5": "540",
    "five": "540",
    "five-forty": "540",
    "7": "720",
    "seven": "720",
    "seven-twenty": "720",
    "9": "900",
    "nine": "900",
    "10": "1080",
    "ten": "1080",
    "12": "1260",
    "twelve": "1260",
    "14": "1440",
    "fourteen": "1440",
}
_DEGREES: Final = frozenset(_SPINS.values())


def spelled_out(phrase: str) -> list[str]:
    """The catalogue's spellings of a phrase that names a side and a spin, best first; none for any other phrase.

    Words around the pair stay: "switch back three tail grab" becomes "switch backside 360 tail grab".
    """
    return list(dict.fromkeys(text for text in _spellings(phrase.lower().split()) if text != phrase.lower()))


def _spellings(words: list[str]) -> Iterator[str]:
    for at, (side, spin) in enumerate(pairwise(words)):
        degrees = spin if spin in _DEGREES else _SPINS.get(spin)
        if side in _SIDES and degrees is not None:
            for said, turn in product(_SIDES[side], [degrees]):
                yield " ".join([*words[:at], said, turn, *words[at + 2 :]])
