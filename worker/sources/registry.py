"""The kinds of documents that are watched, loaded. A new kind is one file beside this one and one line in `kinds`."""

from collections.abc import Mapping
from importlib import import_module
from typing import Final, cast

from worker.sources.kinds import KINDS
from worker.sources.source import Source


def load(kinds: Mapping[str, str]) -> Mapping[str, Source]:
    """The source of each kind by the name of its collection. Raises ImportError, AttributeError or ValueError."""
    sources: dict[str, Source] = {}
    for collection, place in kinds.items():
        module, _, name = place.partition(":")
        source = cast("Source", getattr(import_module(f"worker.sources.{module}"), name)())
        if source.collection != collection:
            message = f"{place} lives in {source.collection}, and is registered for {collection}"
            raise ValueError(message)
        sources[collection] = source
    return sources


SOURCES: Final = load(KINDS)
"""Every kind by the name of its collection."""
