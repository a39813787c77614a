"""Motor's client, for MONGO_DRIVER=motor."""

from typing import Any

from pymongo.errors import ConfigurationError, InvalidURI

from brain.knowledge.connect import Target, client_options
from worker.errors import ConfigurationFault

try:
    from motor.motor_asyncio import AsyncIOMotorClient
except ImportError as error:  # the extra is not installed
    message = "MONGO_DRIVER is motor, which is not installed: install the extra `motor`, or remove MONGO_DRIVER"
    raise ConfigurationFault(message) from error


def open_motor(target: Target, app_name: str) -> Any:  # noqa: ANN401 - the two drivers share no type
    """A client with the same options as `brain.knowledge.connect.open_client`."""
    try:
        return AsyncIOMotorClient(target.uri, **client_options(target, app_name))
    except (ConfigurationError, InvalidURI, ValueError) as error:
        message = f"ATLAS_URI is no usable MongoDB address ({type(error).__name__}): copy it from the console"
        raise ConfigurationFault(message) from error
