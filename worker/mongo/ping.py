"""Does a database answer? Asked before there is an event loop, hence the blocking client."""

from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError


def answers(uri: str, seconds: float) -> bool:
    """Whether the database at this URI (its replica set name included) answers a ping within so many seconds."""
    milliseconds = max(1, int(seconds * 1000))
    client: MongoClient[dict[str, Any]] = MongoClient(
        uri, serverSelectionTimeoutMS=milliseconds, connectTimeoutMS=milliseconds, socketTimeoutMS=milliseconds
    )
    try:
        client.admin.command("ping")
    except PyMongoError:
        return False
    finally:
        client.close()
    return True
