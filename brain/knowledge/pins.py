"""The active pin's row in `knowledge_pins`: read it, create it, each in one atomic operation. The worker changes it."""

from collections.abc import Mapping
from typing import Any, Final

import pymongo
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import DuplicateKeyError, PyMongoError

from brain.knowledge.connect import Row
from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.pin import ACTIVE, PINS, Model, Pin

_READ_SECONDS: Final = 10.0  # a network that stalls must not hold a query for ever


async def active_pin(database: AsyncDatabase[Row]) -> Pin | None:
    """The active pin, or None where nothing was ever pinned. Raises ConfigurationFault for a row that is no pin."""
    try:
        with pymongo.timeout(_READ_SECONDS):
            row: Mapping[str, Any] | None = await database[PINS].find_one({"_id": ACTIVE})
    except PyMongoError as exc:
        raise as_knowledge_error(exc, "reading the active pin") from exc
    if row is None:
        return None
    try:
        return Pin.from_row(row)
    except (KeyError, ValueError) as exc:
        message = f"the row `{ACTIVE}` of {PINS} is no pin (model, dimensions, collection, index): repair it by hand"
        raise ConfigurationFault(message) from exc


async def ensure_pin(database: AsyncDatabase[Row], model: Model) -> Pin:
    """The active pin; where there is none, one of this model in the first collection is created.

    Two that create at once get the same answer: the `_id` decides who was first. An existing pin is never changed.
    """
    existing = await active_pin(database)
    if existing is not None:
        return existing
    pin = Pin(model.name, model.dimensions)
    try:
        await database[PINS].insert_one({"_id": ACTIVE, **pin.as_row()})
    except DuplicateKeyError:
        return await ensure_pin(database, model)
    except PyMongoError as exc:
        raise as_knowledge_error(exc, "creating the active pin") from exc
    return pin
