"""What a companion remembers of a rider, in short sentences: no fact twice, and not without end. Pure."""

from collections.abc import Collection, Sequence
from typing import Final

from brain.knowledge.domain.clean import one_line
from brain.knowledge.domain.names import name_key

MOST_FACTS: Final = 30
"""The oldest are forgotten: all of them stand in every prompt."""
LONGEST_FACT: Final = 200  # characters
MOST_COMPARED: Final = 2 * MOST_FACTS
"""Of the stored facts, the newest: the app may store any number, and each is compared with all others."""

_LONGEST_ENDING: Final = 3
"""Characters by which two forms of a word differ: "ride", "rides"; "board", "boarding"."""
_FILLERS: Final = frozenset("a an and he her his i is my she the their they to".split())  # noqa: SIM905 - reads better
_DENIALS: Final = frozenset("not no never longer anymore stopped quit t dont doesnt cant wont isnt".split())  # noqa: SIM905
"""Words that turn a sentence into its opposite; "t" is the end of "don't"."""


def remembered(known: Sequence[str], fact: str) -> list[str]:
    """The facts with this one, the newest last.

    A fact that is said again stands once: the more detailed wording stays, and the newer of two that say the opposite.
    One that has another word in place of one ("landed a heelflip …") is another fact, however much else is the same.
    Facts that were stored without that care are put in order on the way.
    """
    facts: list[str] = []
    for one in (*known[-MOST_COMPARED:], fact):
        text = one_line(one)[:LONGEST_FACT].strip()
        if text:
            facts = _with(facts, text)
    return facts[-MOST_FACTS:]


def _with(facts: Sequence[str], fact: str) -> list[str]:
    words = _words(fact)
    kept: list[str] = []
    for old in facts:
        before = _words(old)
        if name_key(old) == name_key(fact) or (words < before and _DENIALS.isdisjoint(before - words)):
            return list(facts)  # it says no more than what is known
        if not (words <= before or all(_among(word, words) for word in before)):
            kept.append(old)
    return [*kept, fact]


def _among(word: str, words: Collection[str]) -> bool:
    """Whether the word, or another form of it, is one of these."""
    return word in words or any(_begins(word, other) or _begins(other, word) for other in words)


def _begins(word: str, longer: str) -> bool:
    return longer.startswith(word) and len(longer) - len(word) <= _LONGEST_ENDING < len(word)


def _words(fact: str) -> frozenset[str]:
    found = frozenset(name_key(fact).split())
    return (found - _FILLERS) or found
