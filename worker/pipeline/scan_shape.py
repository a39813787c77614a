"""The shape of a scan: the fingerprints of what it was begun with, one a source and live generation.

A fingerprint holds everything but the document that decides the chunks. So a chunker of another version makes a scan
due, and so does a generation that comes to the others: that scan builds it.
"""

from collections.abc import Iterable
from typing import Final

from worker.model import Scan
from worker.pipeline.diff import Target
from worker.pipeline.shape import chunk_limit

AND: Final = " + "
"""Between the fingerprints of several generations; the active one's stands first."""


def shape_of(chunker_version: int, targets: Iterable[Target]) -> str:
    """The shape of a scan that begins now with these generations."""
    return AND.join(fingerprint(chunker_version, target) for target in targets)


def fingerprint(chunker_version: int, target: Target) -> str:
    """What decides the chunks of one generation."""
    pin, limit = target.pin, chunk_limit(target.tokens)
    return f"chunker {chunker_version}, limit {limit}, {pin.model}/{pin.dimensions} in {pin.collection}"


def covers(scan: Scan, part: str) -> bool:
    """Whether the scan was begun with the generation of this fingerprint, so that when it is done that is complete."""
    return part in scan.shape.split(AND)
