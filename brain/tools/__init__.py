"""The tools, one file a category; the order here is the order everywhere.

A file of this package gives its tools as `TOOLS`.
"""

from typing import Final

from brain.tool import AnyTool
from brain.tools import (
    events,
    feed,
    knowledge,
    learning_path,
    nearby,
    profile,
    progress,
    recommend,
    saved_spots,
    spot_details,
    spots,
    trick_links,
    trickipedia,
    tricklists,
    videos,
)

ALL_TOOLS: Final[tuple[AnyTool, ...]] = (
    *spots.TOOLS,
    *trickipedia.TOOLS,
    *tricklists.TOOLS,
    *knowledge.TOOLS,
    *profile.TOOLS,
    *saved_spots.TOOLS,
    *nearby.TOOLS,
    *spot_details.TOOLS,
    *videos.TOOLS,
    *trick_links.TOOLS,
    *feed.TOOLS,
    *progress.TOOLS,
    *recommend.TOOLS,
    *learning_path.TOOLS,
    *events.TOOLS,
)
