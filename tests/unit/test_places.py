"""Places as people and models write them, and patterns in which accents do not count."""

import re

import pytest

from brain.knowledge.domain.names import LONGEST_PATTERN, MOST_PATTERN, contains, says
from brain.knowledge.domain.places import MOST_PARTS, is_in, is_state, parts, written


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("Berlin", ["Berlin"]),
        ("Berlin, Germany", ["Berlin", "Germany"]),
        (" Seattle ,WA,, USA", ["Seattle", "WA", "USA"]),
        ("Portland OR", ["Portland", "OR"]),
        ("brooklyn new york", ["brooklyn", "new york"]),
        ("Vancouver British Columbia", ["Vancouver", "British Columbia"]),
        ("West Virginia", ["West Virginia"]),
        ("skateparks near me", ["skateparks near me"]),
        ("portland, or", ["portland", "or"]),
        (",", [","]),
    ],
)
def test_the_parts_of_a_place(place: str, found: list[str]) -> None:
    """Between commas; a state at the end of a run is one by itself."""
    assert parts(place) == found


def test_the_parts_are_few() -> None:
    """However many commas there are."""
    assert len(parts("a, " * 60)) == MOST_PARTS


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("OR", "Oregon"),
        ("oregon", "OR"),
        ("D.C.", "District of Columbia"),
        ("Québec", "QC"),
        ("BC", "British Columbia"),
    ],
)
def test_states_by_name_and_letters(one: str, other: str) -> None:
    """Both ways, in any case."""
    assert written(one)[0] == one
    assert other in written(one)
    assert is_state(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [("U.S.A.", "United States"), ("great britain", "UK"), ("LA", "Louisiana"), ("LA", "Los Angeles")],
)
def test_other_places_with_several_names(one: str, other: str) -> None:
    """Two countries, and cities that go by their letters."""
    assert other in written(one)


def matches(condition: dict[str, str], text: str) -> bool:
    """As the database matches."""
    assert condition["$options"] == "i"
    return re.search(condition["$regex"], text, re.IGNORECASE) is not None


@pytest.mark.parametrize(
    ("part", "stored", "meant"),
    [
        ("OR", "Oregon", True),
        ("OR", "or", True),
        ("OR", "Cornwall", False),
        ("Oregon", "OR", True),
        ("Kansas", "Arkansas", False),
        ("New York", "new-york", True),
        ("Germ", "Germany", True),
        ("Tromso", "Tromsø", True),
        ("TROMSØ", "tromso", True),
        ("Sao Paulo", "São Paulo", True),
        ("lodz", "Łódź", True),
        ("istanbul", "İSTANBUL", True),
        ("Da Nang", "Đà Nẵng", True),
        ("Tromso", "Tromse", False),
    ],
)
def test_a_part_of_a_place_meets_what_is_stored(part: str, stored: str, meant: bool) -> None:  # noqa: FBT001 - a table's column
    """States as whole words in either spelling, anything else anywhere in the text; accents never count."""
    ((condition,),) = [each.values() for each in is_in(part, ["city"])["$or"]]
    assert matches(condition, stored) == meant


def test_no_pattern_is_longer_than_a_database_takes() -> None:
    """The letter with the most accents; a long text is met by its own accents alone, of many names the first are."""
    for text in ("o" * 24, "o" * 200, "(" * 10_000, "o " * 10_000):
        for condition in (contains(text), says([text]), says([text] * 40)):
            assert len(condition["$regex"]) <= MOST_PATTERN
            assert matches(condition, text[:LONGEST_PATTERN])
    assert matches(contains("o" * 24), "\u00f8" * 24)
    assert not matches(contains("o" * 60), "\u00f8" * 60)
    many = says(["a" * 100, *[f"{at} o" for at in range(20)], *["b" * 50] * 20, "c"])
    assert matches(many, "7 o")
    assert not matches(many, "d")


@pytest.mark.parametrize("names", [[], [""], ["ollie", " "], ["\u200b"], ["ollie", "\x00"]])
def test_blank_names_are_no_pattern(names: list[str]) -> None:
    """It would match everything."""
    with pytest.raises(ValueError, match="everything"):
        says(names)
