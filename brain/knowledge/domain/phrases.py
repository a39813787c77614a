"""From a question to the names that may stand in it: runs of words, to be looked up in an index.

"how do I 50-50 a ledge" holds the alias "50-50". A look-up by equality is served by an index; a search for every name
inside the question is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from brain.knowledge.domain.clean import one_line
from brain.knowledge.domain.names import LONGEST_PATTERN, name_key
from brain.knowledge.domain.slang import spelled_out

MOST_WORDS: Final = 20
"""Words of a question that are read."""
LONGEST_RUN: Final = 6
"""Words of a name inside a question."""
SHORTEST_PLURAL: Final = 3
"""Characters: "50s" is one, "bs" (backside) is none."""

_COMMON_WORDS: Final = """
    a about after an and any are at be been before can could do does for from get have how i if in into is it its just
    land learn like me my next of off on or out should show some teach tell that the their them then there this to trick
    tricks up want was way what when where which who why will with would you your
"""
COMMON: Final = frozenset(_COMMON_WORDS.split())
"""Words that name no trick by themselves."""
_EDGES: Final = ".,;:!?\"'()[]\u2018\u2019\u201c\u201d"


@dataclass(frozen=True, slots=True)
class Phrase:
    """A run of words of a question, `start` to `stop`, and the texts to look up for it, as typed first."""

    start: int
    stop: int
    texts: tuple[str, ...]

    def inside(self, other: "Phrase") -> bool:
        """Whether it is a part of a longer one."""
        within = other.start <= self.start and self.stop <= other.stop
        return within and other.stop - other.start > self.stop - self.start


def words_of(question: str) -> list[str]:
    """The words of a question without the punctuation around them; "c++" and "50-50" stay whole."""
    words = (word.strip(_EDGES) for word in one_line(question).split())
    return [word for word in words if word][:MOST_WORDS]


def telling(question: str) -> list[str]:
    """The words that say something, each once."""
    return list(dict.fromkeys(word for word in words_of(question) if word.lower() not in COMMON))


def is_telling(name: str) -> bool:
    """Whether a name says something where it stands by itself: "the" is in every text, and so is many a sign."""
    return any(len(word) > 1 and any(map(str.isalnum, word)) for word in telling(name))


def phrases(question: str) -> list[Phrase]:
    """The question itself, then every run of its words, the longest first; a common word alone is none."""
    words = words_of(question)
    whole = one_line(question)[:LONGEST_PATTERN]
    found = [Phrase(0, len(words), _texts(whole))] if whole else []
    for length in range(min(LONGEST_RUN, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            if length > 1 or run[0].lower() not in COMMON:
                found.append(Phrase(start, start + length, _texts(" ".join(run))))
    return found


def spans(names: Mapping[str, Sequence[str]], question: str) -> dict[str, Phrase]:
    """Which of these things (a key and its names each) the question names, and where; a longer phrase hides its parts.

    In the question's order, longest phrases first: "tre flip" hides the "flip" in it.
    """
    asked = phrases(question)
    keyed = {thing: {name_key(name) for name in owned} for thing, owned in names.items()}
    at: dict[str, Phrase] = {}
    for phrase in asked:
        wanted = {name_key(text) for text in phrase.texts}
        for thing, keys in keyed.items():
            if thing not in at and not wanted.isdisjoint(keys) and not any(phrase.inside(one) for one in at.values()):
                at[thing] = phrase
    return at


def _texts(run: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_variants(run)))


def _variants(run: str) -> Iterator[str]:
    for form in (run, *_singulars(run)):
        yield form
        yield from spelled_out(form)
        words = form.split()
        if len(words) == 2:  # noqa: PLR2004 - "50 50" is written "50-50", "kick flip" "kickflip"
            yield "-".join(words)
            yield "".join(words)
        if "-" in form:
            yield form.replace("-", " ")


def _singulars(run: str) -> list[str]:
    """What the run may be the plural of: "nose presses" of "nose press", and of "nose presse", which names nothing."""
    last = run[-SHORTEST_PLURAL:].lower()
    if len(last) < SHORTEST_PLURAL or " " in last or not last.endswith("s") or last.endswith("ss"):
        return []
    return [run[:-1], *([run[:-2]] if last.endswith("es") else [])]
