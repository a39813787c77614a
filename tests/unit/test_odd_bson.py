"""Values that BSON can hold and Python cannot: odd in their own field, and no end of the reading."""

import bson
from bson.datetime_ms import DatetimeMS

from brain.knowledge.connect import Target
from worker.mongo.driver import connected

NOWHERE = Target("mongodb://127.0.0.1:9/", "TrickList2")


async def test_a_document_with_odd_values_is_read() -> None:
    """A date past the year 9999 and a text that is not UTF-8: the driver would refuse every document of the answer."""
    sent = bson.encode({"_id": 1, "date": DatetimeMS(300_000_000_000_000), "name": "Ollie", "tips": "pop"})
    async with connected(NOWHERE, "pymongo") as database:
        odd = sent.replace(b"Ollie", b"Oll\xff\xfe")
        document: object = bson.decode(odd, codec_options=database.raw.codec_options)  # pyright: ignore[reportUnknownMemberType] - its stub names array[Unknown]
    assert document == {"_id": 1, "date": DatetimeMS(300_000_000_000_000), "name": "Oll��", "tips": "pop"}
