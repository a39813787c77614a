"""Videos for a trick: the catalogue's tutorials, and TrickBook's own films and lessons that speak of it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pymongo
from pydantic import Field
from pymongo.errors import PyMongoError

from brain.cards import made, video_card
from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import cut
from brain.knowledge.domain.fields import Fields
from brain.knowledge.domain.links import film_path
from brain.knowledge.domain.names import name_key, says
from brain.knowledge.domain.numbers import year
from brain.knowledge.domain.phrases import is_telling
from brain.knowledge.domain.visibility import PUBLISHED_FILMS, PUBLISHED_LIBRARY, film_is_public, library_is_public
from brain.knowledge.sports import filed_under, ignored_sport, known_sport
from brain.tool import AnyTool, Arguments, Card, Result, Tool, ToolContext, Words, remarks
from brain.trickbook.named_tricks import named_tricks
from brain.trickbook.tricks import Tutorial, sport_of, trick_name, tutorials

MOST_VIDEOS: Final = 10
MOST_TUTORIALS: Final = 4
MOST_RIDERS: Final = 6
LONGEST_DESCRIPTION: Final = 180  # characters
MOST_SECONDS: Final = 2.0
"""Of a search through one collection: no index serves a word inside a text, and the call itself has ten."""
_SHORTEST_ALIAS: Final = 4  # characters; "hop" and "180" stand in every other text
_MOST_NAMES: Final = 12
_FILM_FIELDS: Final = dict.fromkeys(
    [
        *(
            "isPublished",
            "status",
            "slug",
            "type",
            "title",
            "description",
            "producedBy",
            "riders",
            "releaseYear",
            "sportTypes",
        ),
        *("sportTypes", "thumbnails.poster", "thumbnailUrl"),
    ],
    1,
)
"""What is read of a video: never where it is hosted (`bunnyVideoId`, `hlsUrl`, `driveFileId`)."""


class FindVideos(Arguments):
    """Of which trick."""

    trick: Words = Field(description="the trick's name")
    sport: Words | None = Field(default=None, description="such as skateboarding")
    limit: int | None = Field(default=None, ge=1, le=MOST_VIDEOS, description="5 when left out, at most 10")


class VideoFound(Result):
    """A video in TrickBook; `kind` is film, tutorial, documentary and the like."""

    id: str
    kind: str
    title: str
    produced_by: str | None = None
    riders: list[str]
    release_year: int | None = None
    sport_types: list[str]
    description: str | None = None
    web_url: str | None = None
    thumbnail_url: str | None = Field(default=None, exclude=True)  # for the card; a model has no use for it


class VideosFound(Result):
    """`tutorials` are on other sites, picked by the editors; `results` are TrickBook's own, lessons before films."""

    trick: str
    tutorials: list[Tutorial]
    results: list[VideoFound]
    total: int
    message: str | None = None


async def find_videos(context: ToolContext, arguments: FindVideos) -> VideosFound:
    """What can be watched for a trick; of one that is not in the catalogue, what speaks of it by that name."""
    asked = known_sport(arguments.sport)
    tricks = await named_tricks(context, arguments.trick, asked)
    taught = [tutorial for row in tricks for tutorial in tutorials(Fields(row))][:MOST_TUTORIALS]
    names, sports = _names(arguments.trick, tricks), _sports(asked, tricks)
    library, films = await asyncio.gather(
        _found(context, "media_library", PUBLISHED_LIBRARY, names, sports),
        _found(context, "couch_videos", PUBLISHED_FILMS, names, sports),
    )
    videos = [
        *(_told(row, "library", context.origin) for row in library or () if library_is_public(row)),
        *(_told(row, "film", context.origin) for row in films or () if film_is_public(row)),
    ]
    meant = {trick_name(Fields(row)) for row in tricks}
    results = sorted(videos, key=lambda video: video.kind != "tutorial")[: arguments.limit or 5]
    return VideosFound(
        trick=meant.pop() if len(meant) == 1 else arguments.trick,
        tutorials=taught,
        results=results,
        total=len(results),
        message=remarks(
            ignored_sport(arguments.sport),
            _message(found=bool(taught or results), complete=library is not None and films is not None),
        ),
    )


def _message(*, found: bool, complete: bool) -> str | None:
    """What the model should know beside the videos."""
    if not complete:
        return "not every video could be searched in time, so some may be missing"
    return None if found else "TrickBook has no video of it; say so if you suggest one"


def _names(trick: str, rows: Sequence[Row]) -> list[str]:
    """What the trick is called, each name once; without those that say nothing by themselves."""
    names = [trick]
    for row in rows:
        fields = Fields(row)
        names += [trick_name(fields), *(alias for alias in fields.lines("aliases") if len(alias) >= _SHORTEST_ALIAS)]
    return list({name_key(name): name for name in names if is_telling(name)}.values())[:_MOST_NAMES]


def _sports(asked: str | None, rows: Sequence[Row]) -> list[str]:
    """The sports to look among: the one asked for, else the trick's own when it is a trick of one sport; else any."""
    own = {sport_of(row) for row in rows}
    sport = asked or (own.pop() if len(own) == 1 else None)
    return filed_under(sport) if sport else []


async def _found(
    context: ToolContext, collection: str, public: Mapping[str, Any], names: Sequence[str], sports: Sequence[str]
) -> list[Row] | None:
    """The newest videos of a collection that say a name, then by title; None when the search took too long."""
    if not names:
        return []
    said: dict[str, Any] = {"$or": [{field: says(names)} for field in ("title", "description", "tags")]}
    pipeline: list[Mapping[str, Any]] = [
        {"$match": public},
        {"$match": {**said, "sportTypes": {"$in": list(sports)}} if sports else said},
        {"$sort": {"releaseYear": -1, "title": 1, "_id": 1}},
        {"$limit": MOST_VIDEOS},
        {"$project": _FILM_FIELDS},
    ]
    try:
        with pymongo.timeout(MOST_SECONDS):  # which the server is told, so that it stops too
            cursor = await context.database[collection].aggregate(pipeline, session=context.session)
            return await cursor.to_list()
    except PyMongoError as exc:
        if exc.timeout:
            return None
        raise


def _told(row: Row, kind: str, origin: str) -> VideoFound:
    fields = Fields(row)
    path = film_path(fields) if kind == "film" else None
    image = fields.child("thumbnails").raw("poster") or row.get("thumbnailUrl")
    return VideoFound(
        id=str(row["_id"]),
        kind="film" if kind == "film" else (fields.label("type") or kind).lower(),
        title=cut(fields.line("title"), 150) or "A video",
        produced_by=fields.label("producedBy"),
        riders=[rider[:100] for rider in fields.lines("riders")[:MOST_RIDERS]],
        release_year=year(row.get("releaseYear")),
        sport_types=fields.sports("sportTypes")[:10],
        description=cut(fields.line("description"), LONGEST_DESCRIPTION),
        web_url=f"{origin}{path}" if path else None,
        thumbnail_url=image if isinstance(image, str) else None,
    )


def _cards(found: VideosFound) -> list[Card]:
    """Cards of the films: the app opens these by id, not what the older library holds."""
    return made(
        video_card(
            video.id,
            video.title,
            thumbnail_url=video.thumbnail_url,
            produced_by=video.produced_by,
            release_year=video.release_year,
            sport_types=video.sport_types,
        )
        for video in found.results
        if video.web_url
    )


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="find_videos",
        description="Videos for a trick: tutorials that the editors picked, and TrickBook's lessons and films with it.",
        arguments=FindVideos,
        result=VideosFound,
        handler=find_videos,
        cards=_cards,
        links=lambda found: [tutorial.url for tutorial in found.tutorials],
    ),
)
