"""Names in questions and in patterns, for any text at all."""

import re
import unicodedata

from hypothesis import assume, given
from hypothesis import strategies as st

from brain.knowledge.domain.clean import one_line
from brain.knowledge.domain.names import contains, name_key
from brain.knowledge.domain.phrases import phrases, spans
from brain.knowledge.fusion import fused

TEXT = st.text(max_size=60)
STROKES = str.maketrans("øłđħŧı", "oldhti")
RANKINGS = st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=4)


@given(TEXT, TEXT)
def test_a_trick_is_found_by_its_own_name_whatever_it_is(name: str, other: str) -> None:
    """Also beside another trick, and whatever signs are in it."""
    named = spans({"it": [name], "other": [other]}, name)
    assert ("it" in named) == bool(name_key(name))
    assert all(0 <= phrase.start <= phrase.stop for phrase in named.values())


@given(st.text(max_size=3_000))
def test_the_look_ups_of_a_question_are_few(question: str) -> None:
    """One `$in` of bounded length."""
    assert sum(len(phrase.texts) for phrase in phrases(question)) < 1_000


@given(TEXT, st.text(max_size=24), TEXT)
def test_a_pattern_finds_its_text_and_no_operator_of_it_works(before: str, text: str, after: str) -> None:
    """A cleaned text in a longer one is found; a text without it is not."""
    text = one_line(text)
    assume(text)
    assert re.search(contains(text)["$regex"], f"{before}{text}{after}", re.IGNORECASE)
    text, before = text.lower(), before.lower()
    found = re.search(contains(text)["$regex"], before)
    assert (found is not None) == (unaccented(text) in unaccented(before))


def unaccented(text: str) -> str:
    """The text with each Latin letter of the alphabets of Europe and Vietnam without its accents, the rest as it is."""
    plain = (unicodedata.normalize("NFD", char.translate(STROKES))[0] for char in text)
    return "".join(base if base.isascii() and is_latin(char) else char for char, base in zip(text, plain, strict=True))


def is_latin(char: str) -> bool:
    """Whether it is a letter with accents of those alphabets."""
    return "\u00c0" <= char <= "\u024f" or "\u1ea0" <= char <= "\u1ef9"


@given(RANKINGS)
def test_fusion_holds_each_thing_once_and_its_order_is_by_score(rankings: list[list[int]]) -> None:
    """And what is first everywhere is first."""
    scores = fused(rankings)
    assert {thing for thing, _ in scores} == {thing for ranking in rankings for thing in ranking}
    assert [score for _, score in scores] == sorted((score for _, score in scores), reverse=True)
    firsts = {ranking[0] for ranking in rankings if ranking}
    if rankings and all(rankings) and len(firsts) == 1:
        assert scores[0][0] in firsts
