"""Finding tricks of the catalogue: names, words and vectors, at the same time, fused by reciprocal rank.

- Names: every run of words in the question is looked up among names, aliases and slugs, by equality, in an index that
  ignores case and accents. So "50-50", "how do I tre flip" and "back three" are found exactly, and fast.
- Words: all telling words of the question occur in name, aliases or description. No index serves that (it is a pattern
  inside a text), so it is spared where the question is a trick's very name, and looks through MOST_SCANNED at most.
- Vectors: the nearest trick chunks.

A leg that fails or is late is left out and named; the others still answer.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pymongo
from bson import ObjectId
from pymongo.collation import Collation
from pymongo.errors import PyMongoError

from brain.knowledge.connect import Row
from brain.knowledge.domain.difficulty import Difficulty, difficulty, difficulty_pattern
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.ids import object_id
from brain.knowledge.domain.links import name_slug
from brain.knowledge.domain.names import contains, name_key
from brain.knowledge.domain.phrases import phrases, spans, telling
from brain.knowledge.errors import KnowledgeError, Unavailable
from brain.knowledge.fusion import fused
from brain.knowledge.log import log
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.relevance import least_score
from brain.knowledge.sports import spellings
from brain.tool import ToolContext
from brain.trickbook.collation import LOOSE
from brain.trickbook.tricks import TRICK_FIELDS, keys_of, sport_of

LEG_SECONDS: Final = 4.0
NAME_WEIGHT: Final = 3.0
"""A trick that the question names stands before one that words and vectors alone put first: 3/(60+31) > 2/61."""

MOST_SCANNED: Final = 10_000
"""Tricks that are looked through for words; the catalogue has some hundred."""

_LOGGER: Final = logging.getLogger(__name__)
_MOST_NAMED: Final = 50
_MOST_WORDED: Final = 50
_MOST_WORDS: Final = 6
_NEAREST: Final = 20  # chunks; a long trick has several


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tricks: of a sport (a canonical key), of a difficulty; None is any."""

    sport: str | None = None
    difficulty: Difficulty | None = None

    def takes(self, row: Row) -> bool:
        """Whether a trick is one of these."""
        sport = self.sport is None or sport_of(row) == self.sport
        return sport and (self.difficulty is None or difficulty(row.get("difficulty")) == self.difficulty)

    def condition(self) -> dict[str, Any]:
        """The same for the database, under a collation that ignores case; a blank on either side of a sport is met."""
        found: dict[str, Any] = {}
        if self.sport is not None:
            words = spellings(self.sport)
            found["category"] = {"$in": [f"{a}{word}{b}" for word in words for a in ("", " ") for b in ("", " ")]}
        if self.difficulty is not None:
            found["difficulty"] = difficulty_pattern(self.difficulty)
        return found


@dataclass(frozen=True, slots=True)
class TricksFound:
    """The tricks, best first, and which legs failed, a clause each."""

    rows: list[Row]
    failed: tuple[str, ...]


Leg = Callable[[ToolContext, str, Wanted], Awaitable[list[Row]]]
_Answer = list[Row] | KnowledgeError
"""What a leg found, or why it did not."""


async def find_tricks(context: ToolContext, question: str, wanted: Wanted, limit: int) -> TricksFound:
    """The tricks that a question is about. Raises the error of the vector leg when every leg has failed."""
    lexical, near = await asyncio.gather(
        _lexical(context, question, wanted), _tried("similar meaning", context, question, wanted)
    )
    answers = dict(zip(LEGS, (*lexical, near), strict=True))
    failures = {name: found for name, found in answers.items() if isinstance(found, KnowledgeError)}
    if len(failures) == len(LEGS):
        raise failures["similar meaning"]
    rows: dict[ObjectId, Row] = {}
    rankings: list[list[ObjectId]] = []
    for found in answers.values():
        kept = [row for row in found if wanted.takes(row)] if isinstance(found, list) else []
        rows |= {row["_id"]: row for row in kept}
        rankings.append([row["_id"] for row in kept])
    best = fused(rankings, [NAME_WEIGHT, 1.0, 1.0])
    return TricksFound([rows[id_] for id_, _ in best[:limit]], tuple(failures))


async def list_tricks(context: ToolContext, wanted: Wanted, limit: int) -> list[Row]:
    """The first tricks by name, of a sport or a difficulty."""
    condition = wanted.condition()
    found = context.database["trickipedia"].find(
        condition, TRICK_FIELDS, collation=LOOSE, session=context.session, sort=[("name", 1), ("_id", 1)]
    )
    rows = await found.limit(limit * 4).to_list()  # the pattern of a difficulty finds a few too many
    return [row for row in rows if wanted.takes(row)][:limit]


async def by_name(context: ToolContext, question: str, _wanted: Wanted) -> list[Row]:
    """The tricks that the question names, the longest name first, names before aliases."""
    texts = list(dict.fromkeys(text for phrase in phrases(question) for text in phrase.texts))
    slugs = [slug for text in texts[:1] if (slug := name_slug(text))]
    looked_up = await asyncio.gather(
        _equal(context, "name", texts, LOOSE), _equal(context, "aliases", texts, LOOSE), _equal(context, "url", slugs)
    )
    rows = {str(row["_id"]): row for rows in looked_up for row in rows}
    own = {id_: Fields(row).line("name") for id_, row in rows.items()}
    at = spans({id_: [name, *Fields(rows[id_]).lines("aliases")] for id_, name in own.items()}, question)

    def place(id_: str) -> tuple[int, int, bool, str, str]:
        phrase = at[id_]
        by_alias = name_key(own[id_]) not in {name_key(text) for text in phrase.texts}
        return phrase.start - phrase.stop, phrase.start, by_alias, own[id_], id_

    return [rows[id_] for id_ in sorted(at, key=place)]


async def by_words(context: ToolContext, question: str, wanted: Wanted) -> list[Row]:
    """The tricks that hold every telling word of the question; those with the words in their name first."""
    words = telling(question)[:_MOST_WORDS]
    if not words:
        return []
    everywhere = ("name", "aliases", "description")
    holds = [{"$or": [{field: contains(word)} for field in everywhere]} for word in words]
    condition = wanted.condition()
    pipeline: list[Mapping[str, Any]] = [
        *([{"$match": condition}] if condition else []),
        {"$limit": MOST_SCANNED},
        {"$match": {"$and": holds}},
        {"$limit": _MOST_WORDED},
        {"$project": TRICK_FIELDS},
    ]
    found = await context.database["trickipedia"].aggregate(pipeline, collation=LOOSE, session=context.session)
    rows = await found.to_list()
    return sorted(rows, key=lambda row: _closeness(row, words))


async def by_vector(context: ToolContext, question: str, wanted: Wanted) -> list[Row]:
    """The tricks whose chunks are nearest, when they are near enough to have to do with it."""
    found = await context.knowledge.search(question, wanted.sport, "trick", _NEAREST)
    least = least_score(found.pin.model)
    near = (object_id(hit.fields.get("trickId")) for hit in found.hits if hit.score >= least)
    ids = list(dict.fromkeys(id_ for id_ in near if id_ is not None))
    rows = context.database["trickipedia"].find({"_id": {"$in": ids}}, TRICK_FIELDS, session=context.session)
    by_id = {row["_id"]: row for row in await rows.to_list()}
    return [by_id[id_] for id_ in ids if id_ in by_id]


LEGS: Final[Mapping[str, Leg]] = {"names": by_name, "words": by_words, "similar meaning": by_vector}
"""The legs by what a model is told of them; the first one to meet a trick decides between equals."""


async def _lexical(context: ToolContext, question: str, wanted: Wanted) -> tuple[_Answer, _Answer]:
    """What names and words found. The words are not asked where the question is the name of a wanted trick."""
    named = await _tried("names", context, question, wanted)
    if isinstance(named, list) and any(wanted.takes(row) and name_key(question) in keys_of(row) for row in named):
        return named, []
    return named, await _tried("words", context, question, wanted)


async def _tried(name: str, context: ToolContext, question: str, wanted: Wanted) -> _Answer:
    """What the leg found, or why it did not; a bug still raises.

    The driver's timeout ends the work on the server too, asyncio's the wait for whatever else the leg does.
    """
    try:
        async with asyncio.timeout(LEG_SECONDS):
            with pymongo.timeout(LEG_SECONDS):
                return await LEGS[name](context, question, wanted)
    except KnowledgeError as exc:
        failure = exc
    except PyMongoError as exc:
        failure = as_knowledge_error(exc, "searching the catalogue")
    except TimeoutError:
        failure = Unavailable(f"no answer within {LEG_SECONDS:g} s")
    log(_LOGGER, logging.WARNING, "search_leg_failed", f"tricks by {name}: {failure}", leg=name)
    return failure


async def _equal(
    context: ToolContext, field: str, values: Sequence[str], collation: Collation | None = None
) -> list[Row]:
    if not values:
        return []
    found = context.database["trickipedia"].find(
        {field: {"$in": list(values)}}, TRICK_FIELDS, collation=collation, session=context.session
    )
    return await found.limit(_MOST_NAMED).to_list()


def _closeness(row: Row, words: Sequence[str]) -> tuple[int, str, str]:
    """How near to the name the words stand: in it as a run, in it, in an alias too, elsewhere."""
    fields = Fields(row)
    name = fields.line("name").lower()
    titled = f"{name} {' '.join(fields.lines('aliases')).lower()}"
    run = re.escape(" ".join(words).lower())
    if re.search(rf"(?<!\w){run}(?!\w)", name):
        rank = 0
    elif all(word.lower() in name for word in words):
        rank = 1
    else:
        rank = 2 if all(word.lower() in titled for word in words) else 3
    return rank, name, str(row["_id"])
