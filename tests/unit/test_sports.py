"""The words for sports."""

import pytest

from brain.knowledge.sports import SPORTS, canonical_sport, is_known


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Skateboarding", "skateboarding"),
        ("  BMX\n", "bmx"),
        ("Inline Skating", "rollerblading"),
        ("inline-skating", "rollerblading"),
        ("inline", "rollerblading"),
        ("rollerblade", "rollerblading"),
        ("surf", "surfing"),
        ("ski", "skiing"),
        ("snow", "snowboarding"),
        ("skate", "skateboarding"),
        ("wake", "wakeboarding"),
        ("Mountain  Biking", "mtb"),
        ("Street Luge", "street luge"),
        ("", None),
        (" \t", None),
        (None, None),
        (7, None),
        (["bmx"], None),
    ],
)
def test_every_spelling_meets_its_key(word: object, expected: str | None) -> None:
    """Synonyms, case and blanks do not matter; the unknown stays itself and the empty is nothing."""
    assert canonical_sport(word) == expected


def test_canonical_keys_are_fixed_points() -> None:
    """Normalising twice changes nothing."""
    assert [canonical_sport(sport) for sport in SPORTS] == list(SPORTS)
    assert all(is_known(sport) for sport in SPORTS)
    assert not is_known("street luge")
    assert not is_known(None)
