"""When a resume token's place is: an answer's operation time may be far later while a stream catches up.

While a filtered stream reads its way through a backlog, each empty answer leads only as far as the server has read, and
its operation time is already now (seen on SecantusDB 0.7; a MongoDB getMore stops at its deadline likewise). Taking
that time for the place would hide that the place is about to fall out of the history.
"""

from collections.abc import Mapping
from typing import Final

import bson
from bson import Timestamp
from bson.errors import BSONError

_KEYSTRING_TIMESTAMP: Final = 0x82
"""MongoDB's tokens are key strings that begin with this type byte and the cluster time, big-endian (since 4.0)."""
_TIME_BYTES: Final = 9


def token_time(token: Mapping[str, object]) -> Timestamp | None:
    """The cluster time of the token's place, or None for a token of an unknown form.

    Known are MongoDB's form and SecantusDB's (a BSON document with the time under `t`), both in hex under `_data`.
    """
    data = token.get("_data")
    if not isinstance(data, str):
        return None
    try:
        raw = bytes.fromhex(data)
    except ValueError:
        return None
    if len(raw) >= _TIME_BYTES and raw[0] == _KEYSTRING_TIMESTAMP:
        return Timestamp(int.from_bytes(raw[1:5], "big"), int.from_bytes(raw[5:9], "big"))
    try:
        time: object = bson.decode(raw).get("t")  # pyright: ignore[reportUnknownMemberType] - its stub names array[Unknown]
    except BSONError:
        return None
    return time if isinstance(time, Timestamp) else None
