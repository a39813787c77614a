"""What a companion remembers: no fact twice, not without end, whatever is stored already."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.knowledge.domain.names import name_key
from brain.trickbook.facts import LONGEST_FACT, MOST_FACTS, remembered


@pytest.mark.parametrize(
    ("known", "fact", "kept"),
    [
        (["Lives in Boise"], "He lives in Boise, Idaho", ["He lives in Boise, Idaho"]),
        (["Lives in Boise, Idaho"], "lives in boise", ["Lives in Boise, Idaho"]),
        (["Likes rails"], "Does not like bowls", ["Likes rails", "Does not like bowls"]),
        (["Not afraid of handrails"], "Afraid of handrails", ["Afraid of handrails"]),
        (["Afraid of handrails"], "Not afraid of handrails", ["Not afraid of handrails"]),
        (["Skates on Sundays"], "Skate on Sunday mornings", ["Skate on Sunday mornings"]),
        (["Likes rails"], "Does not like rails", ["Does not like rails"]),
        (
            ["Landed a kickflip down the five stair at Burnside park"],
            "Landed a heelflip down the five stair at Burnside park",
            [
                "Landed a kickflip down the five stair at Burnside park",
                "Landed a heelflip down the five stair at Burnside park",
            ],
        ),
        (["Rides regular", "rides REGULAR", " "], "Has a dog", ["Rides regular", "Has a dog"]),
        ([], "  two\n lines ", ["two lines"]),
        ([], "", []),
    ],
)
def test_the_same_fact_in_other_words(known: list[str], fact: str, kept: list[str]) -> None:
    """The more detailed wording stays, the newer of two opposites, and no blank ones."""
    assert remembered(known, fact) == kept


@given(st.lists(st.text(max_size=40), max_size=60), st.text(max_size=300))
def test_whatever_is_stored_the_facts_are_few_short_and_different(known: list[str], fact: str) -> None:
    """And saying the newest again changes nothing."""
    facts = remembered(known, fact)
    assert len(facts) <= MOST_FACTS
    assert all(0 < len(one) <= LONGEST_FACT for one in facts)
    assert len({name_key(one) for one in facts}) == len(facts)
    if facts:
        assert remembered(facts, facts[-1]) == facts
