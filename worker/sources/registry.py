"""The kinds of documents that are watched. A new kind is one file beside this one and one line here."""

from collections.abc import Mapping
from typing import Final

from worker.sources.coaching import Coaching
from worker.sources.docs import Docs
from worker.sources.events import Events
from worker.sources.films import Films
from worker.sources.riders import Riders
from worker.sources.source import Source
from worker.sources.spots import Spots
from worker.sources.trickipedia import Trickipedia

_KINDS: Final[tuple[Source, ...]] = (
    Trickipedia(),
    Docs(),
    Coaching(),
    Films(),
    Spots(),
    Events(),
    Riders(),
)

SOURCES: Final[Mapping[str, Source]] = {source.collection: source for source in _KINDS}
"""Every kind by the name of its collection."""


def source_named(collection: str) -> Source | None:
    """The kind that lives in this collection, or None."""
    return SOURCES.get(collection)
