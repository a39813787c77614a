"""The registration of every kind of document: its collection, and where its source is (`file:class` in this folder).

Words alone, so that the command line and the settings can name the kinds without loading any of them.
"""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, str]] = {
    "trickipedia": "trickipedia:Trickipedia",
    "docs": "docs:Docs",
    "coaching": "coaching:Coaching",
    "couch_videos": "films:Films",
    "spots": "spots:Spots",
    "events": "events:Events",
    "riders": "riders:Riders",
}
