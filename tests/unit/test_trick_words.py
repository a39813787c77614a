"""Names in questions, slang, difficulty and the fusion of rankings: the pure parts of search_trickipedia."""

import pytest

from brain.knowledge.domain.difficulty import difficulty
from brain.knowledge.domain.phrases import MOST_WORDS, is_telling, phrases, spans, telling, words_of
from brain.knowledge.domain.slang import spelled_out
from brain.knowledge.fusion import K, fused

NAMES = {
    "tre": ["Tre Flip (360 Flip)", "tre flip", "360 flip"],
    "kick": ["Kickflip", "kick flip", "flip"],
    "fifty": ["50-50 Grind", "50-50", "5050"],
    "five": ["5-0 Grind", "5-0", "five-o"],
    "back": ["Backside 360"],
    "odd": ["50-50 (Switch) + 180 Out"],
    "plus": ["c++ (switch)"],
    "press": ["Nose Press"],
}


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("50-50", "fifty"),
        ("5-0", "five"),
        ("50 50", "fifty"),
        ("tre flip", "tre"),
        ("TRE FLIP (360 flip)", "tre"),
        ("how do I do a tre flip?", "tre"),
        ("teach me to 50-50 a ledge", "fifty"),
        ("back three", "back"),
        ("back 3", "back"),
        ("is a BS 360 hard?", "back"),
        ("50-50 (switch) + 180 out", "odd"),
        ("c++ (switch)", "plus"),
        ("kick-flip", "kick"),
        ("kick flips", "kick"),
        ("are 360 flips hard", "tre"),
        ("back threes", "back"),
        ("nose presses", "press"),
    ],
)
def test_a_question_names_a_trick(question: str, first: str) -> None:
    """By name or alias, in any of its spellings, alone or in a sentence."""
    assert next(iter(spans(NAMES, question))) == first


def test_a_longer_name_hides_the_shorter_one_inside_it() -> None:
    """The "flip" in "tre flip" is no kickflip (whose alias it is); elsewhere in the question one still counts."""
    assert list(spans(NAMES, "tre flip")) == ["tre"]
    assert list(spans(NAMES, "tre flip or kickflip")) == ["tre", "kick"]


@pytest.mark.parametrize("question", ["", "   ", "...", "what is the best way to do that", "\x00", "(", "fortyfive"])
def test_a_question_without_a_name_names_nothing(question: str) -> None:
    """Nothing, and no exception."""
    assert spans(NAMES, question) == {}


def test_the_number_of_look_ups_is_bounded() -> None:
    """However long the question is."""
    assert len(words_of("word " * 10_000)) == MOST_WORDS
    assert len(phrases("back three " * 10_000)) < 120


def test_telling_words() -> None:
    """Numbers stay, common words go, each word once."""
    assert telling("How do I do the 50-50, on a rail? A rail!") == ["50-50", "rail"]


@pytest.mark.parametrize(
    ("name", "telling_by_itself"),
    [
        ("the ollie", True),
        ("5-0", True),
        ("c++", True),
        ("尖翻", True),
        ("the", False),
        ("how to", False),
        ("b", False),
        ("--", False),
    ],
)
def test_names_that_say_something(name: str, telling_by_itself: bool) -> None:  # noqa: FBT001 - a table's column
    """Common words, single letters and signs do not."""
    assert is_telling(name) == telling_by_itself


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("back three", "backside 360"),
        ("front 5", "frontside 540"),
        ("cab nine", "cab 900"),
        ("switch back seven tail grab", "switch backside 720 tail grab"),
        ("bs 360", "backside 360"),
        ("FS One-Eighty", "frontside 180"),
    ],
)
def test_spins_by_their_first_figure(said: str, means: str) -> None:
    """As announcers say them."""
    assert spelled_out(said)[0] == means


@pytest.mark.parametrize("said", ["three", "back", "back lip", "front foot", "", "backside 360 ollie"[:8]])
def test_no_spin_no_spelling(said: str) -> None:
    """A side or a number alone is no spin."""
    assert spelled_out(said) == []


@pytest.mark.parametrize(
    ("stored", "means"),
    [
        ("Beginner", "beginner"),
        ("beginner (1)", "beginner"),
        ("EASY", "beginner"),
        (1, "beginner"),
        (" Intermediate ", "intermediate"),
        ("Advanced", "advanced"),
        ("expert", "expert"),
        ("gnarly", None),
        (None, None),
        ([], None),
    ],
)
def test_difficulty_in_loose_words(stored: object, means: str | None) -> None:
    """Free strings in the data."""
    assert difficulty(stored) == means


def test_fusion_by_reciprocal_rank() -> None:
    """The sum of 1 / (60 + rank); two middling ranks beat one first."""
    assert fused([["a", "b"], ["b", "c"]]) == [("b", 1 / (K + 2) + 1 / (K + 1)), ("a", 1 / (K + 1)), ("c", 1 / (K + 2))]


def test_fusion_keeps_the_order_of_equals_and_counts_the_better_rank_of_a_thing_listed_twice() -> None:
    """Deterministic, whatever the input."""
    assert [thing for thing, _ in fused([["x"], ["y"], []])] == ["x", "y"]
    assert fused([["a", "b", "a"]]) == fused([["a", "b"]])
    assert fused(list[list[str]]()) == []


def test_fusion_by_weight() -> None:
    """A first place of weight 3 beats first places in two others."""
    assert [thing for thing, _ in fused([["name"], ["x"], ["x"]], [3, 1, 1])] == ["name", "x"]
    with pytest.raises(ValueError, match="zip"):
        fused([["a"]], [1, 2])
