"""Search indexes at the server: implements `worker.vector_index.VectorIndex`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from bson.binary import VECTOR_SUBTYPE, Binary, BinaryVectorDtype

from brain.knowledge.pin import Pin
from brain.knowledge.search.index import VECTOR_FIELD, Listed, definition, differences
from worker.errors import Unsupported
from worker.mongo.driver import Database
from worker.vector_index import IndexState, Vectors

_FLOAT32: Final = BinaryVectorDtype.FLOAT32.value + b"\x00"  # the element type, then the padding (BSON vectors)
_FIELD: Final = f"${VECTOR_FIELD}"


class MongoVectorIndex:
    """The indexes of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def look(self, pin: Pin) -> IndexState:
        """What `$listSearchIndexes` says; a server without vector search is no error."""
        asked = [{"$listSearchIndexes": {"name": pin.index}}]
        try:
            # Search stages take no read concern but local (mongodb/mongo, LiteParsedSearchStage).
            listed = Listed.of(await self._database.aggregate(pin.collection, asked, read_concern="local"))
        except Unsupported:
            return IndexState(pin, supported=False)
        if listed is None:
            return IndexState(pin, supported=True)
        return IndexState(
            pin,
            supported=True,
            exists=True,
            status=listed.status,
            queryable=listed.queryable,
            differences=differences(listed.definition, pin),
            indexed=listed.documents,
        )

    async def status(self, pin: Pin) -> IndexState:
        """The same, with the vectors counted."""
        state = await self.look(pin)
        return replace(state, vectors=await self.vectors(pin))

    async def vectors(self, pin: Pin) -> Vectors:
        """The chunks by what their vectors are, told apart by the server: no vector goes over the wire.

        A binary vector that is not finite, or zero with a sign, counts as fit here: `verify` reads the numbers.
        """
        counted = {"$group": {"_id": _verdict(pin.dimensions), "n": {"$sum": 1}}}
        rows = await self._database.aggregate(pin.collection, [counted])
        return Vectors(**{str(row["_id"]): int(row["n"]) for row in rows})

    async def create(self, pin: Pin) -> None:
        """The command `createSearchIndexes`, which wants the collection to be there."""
        await self._database.ensure_index(pin.collection, [("docKey", 1)])
        spec = {"name": pin.index, "type": "vectorSearch", "definition": definition(pin)}
        await self._database.command({"createSearchIndexes": pin.collection, "indexes": [spec]})

    async def update(self, pin: Pin) -> None:
        """The command `updateSearchIndex`."""
        command = {"updateSearchIndex": pin.collection, "name": pin.index, "definition": definition(pin)}
        await self._database.command(command)


def _verdict(dimensions: int) -> Mapping[str, Any]:
    """The expression that names which of `Vectors`' fields a chunk counts for.

    Binary data is ordered by length, then subtype, then bytes (MongoDB manual, "Comparison/Sort Order"), so a float32
    vector of this width is what lies between two of them, and the one of all zeros is the least.
    """
    zero, least, most = (
        Binary(_FLOAT32 + numbers, VECTOR_SUBTYPE)
        for numbers in (b"\x00" * 4 * dimensions, b"\x00" * (4 * dimensions - 1) + b"\x01", b"\xff" * 4 * dimensions)
    )
    odd_size = {"$ne": [{"$binarySize": _FIELD}, len(_FLOAT32) + 4 * dimensions]}
    strangers = {"$filter": {"input": _FIELD, "cond": {"$not": [{"$isNumber": "$$this"}]}}}
    numbers = _first(
        ({"$ne": [{"$size": _FIELD}, dimensions]}, "wrong_width"),
        ({"$gt": [{"$size": strangers}, 0]}, "wrong_type"),
        ({"$and": [{"$eq": [{"$max": _FIELD}, 0]}, {"$eq": [{"$min": _FIELD}, 0]}]}, "zero"),
        otherwise="fit",
    )
    return _first(
        ({"$eq": [{"$ifNull": [_FIELD, None]}, None]}, "missing"),
        ({"$and": [{"$gte": [_FIELD, least]}, {"$lte": [_FIELD, most]}]}, "fit"),
        ({"$and": [{"$gte": [_FIELD, zero]}, {"$lt": [_FIELD, least]}]}, "zero"),
        ({"$and": [{"$eq": [{"$type": _FIELD}, "binData"]}, odd_size]}, "wrong_width"),
        ({"$isArray": [_FIELD]}, numbers),
        otherwise="wrong_type",
    )


def _first(*branches: tuple[Mapping[str, Any], object], otherwise: object) -> Mapping[str, Any]:
    """The value of the first case that is true."""
    return {"$switch": {"branches": [{"case": case, "then": then} for case, then in branches], "default": otherwise}}
