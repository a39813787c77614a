"""How a program reaches the database, and what the driver's errors mean.

The address is `ATLAS_URI`, or with `--embedded` the one that the worker's starter wrote to `DIR/server.json` (design
decision 10). Only worker commands start a server; everybody else looks for a live one here.
"""

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import ConfigurationError, InvalidURI

from brain.knowledge.errors import ConfigurationFault, Unavailable
from brain.knowledge.mongo_errors import as_knowledge_error, masked
from brain.knowledge.settings import KnowledgeSettings

__all__ = [
    "SERVER_FILE",
    "Row",
    "Target",
    "as_knowledge_error",
    "client_options",
    "find_target",
    "is_reachable",
    "live_server",
    "masked",
    "open_client",
    "opened",
]

Row = dict[str, Any]
"""A document as the driver decodes it."""

SERVER_FILE: Final = "server.json"
APP_NAME: Final = "trickbook-brain"
SELECTION_SECONDS: Final = 5.0  # a primary is there at once or after an election; beyond that a person wants to know
CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0  # a connection that is silent for so long is dead: a NAT forgot it, a host went away
_ANSWER_SECONDS: Final = 1.0
_LARGEST_SERVER_FILE: Final = 64 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Target:
    """Which database: its address (may hold a password, so it is not shown), its name, and whether it is embedded."""

    uri: str
    database: str
    embedded: bool = False

    def __repr__(self) -> str:
        return f"Target({masked(self.uri)!r}, {self.database!r}, embedded={self.embedded})"


def live_server(data_dir: Path) -> str | None:
    """The URI of the embedded server in this folder; None unless its process lives and its port answers.

    Blocks for up to a second. Only loopback addresses count: the file is data, and must not send us elsewhere.
    """
    found = _server_file(data_dir / SERVER_FILE)
    if found is None:
        return None
    uri, pid = found
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme != "mongodb" or host not in {"127.0.0.1", "::1", "localhost"} or port is None:
        return None
    return uri if _lives(pid) and _answers(host, port) else None


def find_target(uri: str | None, database: str, data_dir: Path | None) -> Target:
    """The database to use: the embedded one in `data_dir` when a folder is given, else the one at `uri`.

    Raises Unavailable when no server lives in the folder, ConfigurationFault when there is no address at all.
    """
    if data_dir is not None:
        embedded = live_server(data_dir)
        if embedded is None:
            message = (
                f"no embedded database is running in {data_dir}: start one with"
                f" `python -m worker run --embedded --data {data_dir}`"
            )
            raise Unavailable(message)
        return Target(embedded, database, embedded=True)
    if not uri:
        message = "ATLAS_URI is not set: set it, or use --embedded for the database in a local folder"
        raise ConfigurationFault(message)
    return Target(uri, database)


def client_options(target: Target, app_name: str) -> dict[str, Any]:
    """The options of every client, under whichever driver."""
    options: dict[str, Any] = {
        "appname": app_name,
        "tz_aware": True,
        "uuidRepresentation": "standard",
        "w": "majority",
        "readConcernLevel": "majority",
        "serverSelectionTimeoutMS": int(SELECTION_SECONDS * 1000),
        "connectTimeoutMS": int(CONNECT_SECONDS * 1000),
        "socketTimeoutMS": int(ANSWER_SECONDS * 1000),
    }
    if target.embedded:  # the embedded server slows down under retryable writes, and restarts faster than 10 s
        options |= {"retryWrites": False, "heartbeatFrequencyMS": 500}
    return options


def open_client(target: Target, app_name: str = APP_NAME) -> AsyncMongoClient[Row]:
    """A client with the options that everybody needs; connects at the first call. Close it with `await client.close()`.

    Raises ConfigurationFault when the URI is none.
    """
    try:
        return AsyncMongoClient(target.uri, **client_options(target, app_name))
    except (ConfigurationError, InvalidURI, ValueError) as exc:
        message = f"ATLAS_URI is no usable MongoDB address ({type(exc).__name__}): copy it from the database's console"
        raise ConfigurationFault(message) from exc


def is_reachable(database: AsyncDatabase[Row]) -> bool:
    """Whether the driver knows a server to ask now; false too before the first call has found one. Asks nothing."""
    return database.client.topology_description.has_readable_server(database.read_preference)


@asynccontextmanager
async def opened(settings: KnowledgeSettings, data: Path | None) -> AsyncGenerator[AsyncDatabase[Row]]:
    """The embedded database in `data`, else the one at ATLAS_URI, through a client that is closed at the end.

    Raises what `find_target` and `open_client` raise.
    """
    uri = None if settings.atlas_uri is None else settings.atlas_uri.get_secret_value()
    target = await asyncio.to_thread(find_target, uri, settings.atlas_db, data)
    async with open_client(target) as client:
        yield client[target.database]


def _server_file(path: Path) -> tuple[str, int] | None:
    """The URI and the pid in a server file, or None when it is missing or odd."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_SERVER_FILE + 1)
        value: object = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return None
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    uri, pid = fields.get("uri"), fields.get("pid")
    if isinstance(uri, str) and isinstance(pid, int) and not isinstance(pid, bool) and pid > 0:
        return uri, pid
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True  # somebody else's, but alive
    except (ProcessLookupError, OverflowError):
        return False
    return True


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_ANSWER_SECONDS):
            return True
    except OSError:
        return False
