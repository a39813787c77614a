"""Which engine searches: the one that `VECTOR_SEARCH` names, or with `auto` the one that the server can."""

from typing import Literal

from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.knowledge.errors import ConfigurationFault, Unsupported
from brain.knowledge.pin import Pin
from brain.knowledge.search import SearchEngine
from brain.knowledge.search.atlas import AtlasSearch, index_state
from brain.knowledge.search.exact import ExactSearch

Mode = Literal["auto", "atlas", "exact"]


async def search_engine(
    database: AsyncDatabase[Row], pin: Pin, mode: Mode = "auto", *, follow: bool = False
) -> SearchEngine:
    """The engine over the pin's collection; but for `exact`, the server is asked once whether it has vector search.

    `follow` is for readers that live long: the exact engine then keeps to the collection (Atlas does so by itself).
    Raises ConfigurationFault when `atlas` is demanded of a server that has none.
    """
    collection = database[pin.collection]
    if mode == "exact":
        return ExactSearch(collection, pin, follow=follow)
    try:
        await index_state(collection, pin.index)
    except Unsupported as exc:
        if mode == "atlas":
            message = "VECTOR_SEARCH is atlas and this server has no vector search: set it to exact or auto"
            raise ConfigurationFault(message) from exc
        return ExactSearch(collection, pin, follow=follow)
    return AtlasSearch(collection, pin)
