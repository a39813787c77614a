"""Places as people write them: "Seattle, WA" for what the data calls Seattle in the state of Washington.

Sources of the two letters: USPS Publication 28, appendix B; Canada Post's addressing guidelines.
"""

from collections.abc import Sequence
from typing import Any, Final

from brain.knowledge.domain.names import contains, name_key, says

MOST_PARTS: Final = 6
"""Of a place that are read: a name, a street, a town, a state, a code and a country."""

_STATES: Final = """
    Alabama AL, Alaska AK, Arizona AZ, Arkansas AR, California CA, Colorado CO, Connecticut CT, Delaware DE,
    District of Columbia DC, Florida FL, Georgia GA, Hawaii HI, Idaho ID, Illinois IL, Indiana IN, Iowa IA, Kansas KS,
    Kentucky KY, Louisiana LA, Maine ME, Maryland MD, Massachusetts MA, Michigan MI, Minnesota MN, Mississippi MS,
    Missouri MO, Montana MT, Nebraska NE, Nevada NV, New Hampshire NH, New Jersey NJ, New Mexico NM, New York NY,
    North Carolina NC, North Dakota ND, Ohio OH, Oklahoma OK, Oregon OR, Pennsylvania PA, Puerto Rico PR,
    Rhode Island RI, South Carolina SC, South Dakota SD, Tennessee TN, Texas TX, Utah UT, Vermont VT, Virginia VA,
    Washington WA, West Virginia WV, Wisconsin WI, Wyoming WY,
    Alberta AB, British Columbia BC, Manitoba MB, New Brunswick NB, Newfoundland and Labrador NL,
    Northwest Territories NT, Nova Scotia NS, Nunavut NU, Ontario ON, Prince Edward Island PE, Quebec QC,
    Saskatchewan SK, Yukon YT
"""
_COUNTRIES: Final = (
    ("USA", "US", "United States", "United States of America"),
    ("UK", "United Kingdom", "Great Britain"),
)
_CITIES: Final = (("Los Angeles", "LA"), ("New York", "NYC"), ("San Francisco", "SF"))


def _key(place: str) -> str:
    """What makes two spellings one: "U.S.A." is USA."""
    return name_key(place).replace(" ", "")


def _table(groups: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The spellings by the key of each."""
    found: dict[str, tuple[str, ...]] = {}
    for group in groups:
        for spelling in group:
            found[_key(spelling)] = (*found.get(_key(spelling), ()), *group)
    return found


_STATE_GROUPS: Final = [state.strip().rsplit(" ", 1) for state in _STATES.split(",")]
_KNOWN: Final = _table([*_STATE_GROUPS, *_COUNTRIES, *_CITIES])  # LA is two places
_STATE_KEYS: Final = frozenset(_table(_STATE_GROUPS))
_COUNTRY_KEYS: Final = frozenset(_table(_COUNTRIES))


def parts(place: str) -> list[str]:
    """What a place is made of, the nearest first: between commas, and a state at the end of a run of words.

    "Portland OR" and "Portland, Oregon" have two parts. Letters without a comma before them are a state in capitals
    only: "near me" is not in Maine. At least one part, the text itself when it is nothing but commas.
    """
    found = [part for run in place.split(",") for part in _without_state(run.split())]
    return found[:MOST_PARTS] or [place]


def is_state(part: str) -> bool:
    """Whether it is a state of the USA or a province of Canada, by name or letters."""
    return _key(part) in _STATE_KEYS


def is_country(part: str) -> bool:
    """Whether it is a country with several names."""
    return _key(part) in _COUNTRY_KEYS


def written(part: str) -> list[str]:
    """Every way to write a place that has several, as given first."""
    return list(dict.fromkeys([part, *_KNOWN.get(_key(part), ())]))


def is_in(part: str, fields: Sequence[str]) -> dict[str, Any]:
    """The condition that one of these fields tells this part of a place: whole words where it has several spellings."""
    known = written(part)
    told = says(known) if len(known) > 1 else contains(part)
    return {"$or": [{field: told} for field in fields]}


def _without_state(words: Sequence[str]) -> list[str]:
    """The words of a run as one part, or two when a state ends it; the longest one, which is West Virginia."""
    for at in range(len(words)):
        end = " ".join(words[at:])
        if is_state(end) and (len(_key(end)) > 2 or end.isupper()):  # noqa: PLR2004 - letters
            return [*([" ".join(words[:at])] if at else []), end]
    return [" ".join(words)] if words else []
