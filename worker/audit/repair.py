"""A repair cut into steps: each is one request to the leader, bounded, and done when the next begins.

So a repair that ends in the middle has mended what it came to, and the next one finds the rest.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import bson

from worker.audit.verify import Suspects
from worker.model import DocKey

MOST: Final = 500
"""Documents and rows of one step."""

MOST_BYTES: Final = 1_000_000
"""Of the ids of one step: a request is one document, which MongoDB bounds at 16 MB, and an id may be long."""


def steps(suspects: Suspects) -> Iterator[tuple[Sequence[DocKey], Sequence[object]]]:
    """Documents to look at, and ids of chunk rows to remove before.

    A row and its document go together: removed by one request and looked at by another, it would be missing if the
    command ended in between.
    """
    rows = [(row.owner, [row.id]) for row in suspects.rows.values()]
    documents: list[tuple[DocKey | None, list[object]]] = [(key, []) for key in suspects.documents]
    keys: dict[DocKey, None] = {}
    discard: list[object] = []
    size = 0
    for owner, ids in [*rows, *documents]:
        grown = len(bson.encode({"": [*ids, None if owner is None else owner.raw]}))
        if (keys or discard) and (len(keys) + len(discard) + 2 > MOST or size + grown > MOST_BYTES):
            yield list(keys), discard
            keys, discard, size = {}, [], 0
        if owner is not None:
            keys[owner] = None
        discard += ids
        size += grown
    if keys or discard:
        yield list(keys), discard
