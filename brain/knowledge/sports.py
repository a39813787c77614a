"""The words for sports: many spellings in, one canonical key out.

The spellings are those of the site, the apps and the stored data. The same function normalises what the worker stores
and what a reader asks for, so that "Inline Skating" in a trick meets "rollerblade" in a question.
"""

import re
import unicodedata
from typing import Final

SPORTS: Final[tuple[str, ...]] = (
    "skateboarding",
    "snowboarding",
    "surfing",
    "bmx",
    "skiing",
    "wakeboarding",
    "scooter",
    "rollerblading",
    "longboarding",
    "mtb",
)
"""The canonical keys."""

_SYNONYMS: Final[dict[str, str]] = {
    "skate": "skateboarding",
    "skateboard": "skateboarding",
    "skating": "skateboarding",
    "snow": "snowboarding",
    "snowboard": "snowboarding",
    "surf": "surfing",
    "surfboarding": "surfing",
    "ski": "skiing",
    "wake": "wakeboarding",
    "wakeboard": "wakeboarding",
    "scootering": "scooter",
    "scooters": "scooter",
    "scooter riding": "scooter",
    "inline": "rollerblading",
    "inline skate": "rollerblading",
    "inline skating": "rollerblading",
    "rollerblade": "rollerblading",
    "rollerblades": "rollerblading",
    "roller blading": "rollerblading",
    "longboard": "longboarding",
    "mountain bike": "mtb",
    "mountain biking": "mtb",
    "mountainbike": "mtb",
    "mountainbiking": "mtb",
}

_BETWEEN: Final = re.compile(r"[\s_-]+")


def canonical_sport(value: object) -> str | None:
    """The canonical key of a sport word; an unknown word comes back lower-cased, an empty or odd value is None.

    Blanks, hyphens and underscores between words count as one blank, so the site's slug `inline-skating` is known too.
    """
    if not isinstance(value, str):
        return None
    lowered = unicodedata.normalize("NFC", value).strip().lower()
    if not lowered:
        return None
    if lowered in SPORTS:
        return lowered
    return _SYNONYMS.get(_BETWEEN.sub(" ", lowered), lowered)


def is_known(sport: str | None) -> bool:
    """Whether this is a canonical key."""
    return sport in SPORTS


def known_sport(value: object) -> str | None:
    """The canonical key of a sport word, or None for a word that names no sport ("flatground", "rail")."""
    sport = canonical_sport(value)
    return sport if is_known(sport) else None


def ignored_sport(value: object) -> str | None:
    """What a model is told of a word that names no sport, so that nothing was filtered by it; None for a known one."""
    unknown = canonical_sport(value) is not None and known_sport(value) is None
    return "the sport was ignored: TrickBook does not know it" if unknown else None


def spellings(sport: str) -> list[str]:
    """Every lower-case spelling of a canonical key, itself first: "surf" is what the feed says for surfing."""
    return [sport, *(word for word, meant in _SYNONYMS.items() if meant == sport)]


def filed_under(sport: str) -> list[str]:
    """The keys under which spots, films and riders of a sport are stored; longboarding is filed under skateboarding."""
    return [sport, "skateboarding"] if sport == "longboarding" else [sport]
