"""The active pin for the worker: the one of the database, created from the settings where there is none."""

from typing import cast

from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.knowledge.pin import Model, Pin
from brain.knowledge.pins import ensure_pin
from worker.errors import PinMismatch
from worker.mongo.driver import Database


async def pinned(database: Database, model: Model) -> Pin:
    """The active pin; raises PinMismatch when it names another model than the settings do."""
    pin = await ensure_pin(cast("AsyncDatabase[Row]", database.raw), model)
    if (pin.model, pin.dimensions) != (model.name, model.dimensions):
        message = (
            f"the chunks are pinned to {pin.model} ({pin.dimensions}) and the settings name {model.name} "
            f"({model.dimensions}): set EMBEDDING_PROVIDER, EMBEDDING_MODEL and EMBEDDING_DIMENSIONS to the pin's, or "
            "use another database"
        )
        raise PinMismatch(message)
    return pin
