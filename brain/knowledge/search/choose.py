"""Which engine searches: the one that `VECTOR_SEARCH` names, or with `auto` the one that the server can."""

from typing import Literal

from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import OperationFailure, PyMongoError

from brain.knowledge.connect import Row
from brain.knowledge.mongo_errors import NO_SEARCH, as_knowledge_error, code_of
from brain.knowledge.pin import Pin
from brain.knowledge.search import SearchEngine
from brain.knowledge.search.atlas import AtlasSearch, index_state
from brain.knowledge.search.exact import ExactSearch

Mode = Literal["auto", "atlas", "exact"]


async def search_engine(database: AsyncDatabase[Row], pin: Pin, mode: Mode = "auto") -> SearchEngine:
    """The engine over the pin's collection; `auto` asks the server once whether it knows search indexes at all."""
    collection = database[pin.collection]
    if mode == "atlas":
        return AtlasSearch(collection, pin)
    if mode == "exact":
        return ExactSearch(collection, pin)
    try:
        await index_state(collection, pin.index)
    except OperationFailure as exc:
        if code_of(exc) in NO_SEARCH:
            return ExactSearch(collection, pin)
        raise as_knowledge_error(exc, "asking the server for its search indexes") from exc
    except PyMongoError as exc:
        raise as_knowledge_error(exc, "asking the server for its search indexes") from exc
    return AtlasSearch(collection, pin)
