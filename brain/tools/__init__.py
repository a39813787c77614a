"""The tools, one file a category; the order here is the order everywhere.

A file of this package gives its tools as `TOOLS`.
"""

from typing import Final

from brain.registry import AnyTool
from brain.tools import events, nearby, saved_spots, spot_details

ALL_TOOLS: Final[tuple[AnyTool, ...]] = (
    *saved_spots.TOOLS,
    *nearby.TOOLS,
    *spot_details.TOOLS,
    *events.TOOLS,
)
