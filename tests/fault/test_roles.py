"""Users with fewer rights, on a server that asks for them: what is missing is named, what is not needed is not used.

SecantusDB enforces find and writes by role; it does not tell `changeStream` from `find`, so that right alone is held on
the wire (`wire/test_wire_writes.py`, M14).
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Final, cast

import pytest
from bson import Timestamp
from pymongo import MongoClient

from brain.knowledge.connect import Target
from tests.support.secantus import secantus
from worker.errors import Refused
from worker.model import Checkpoint, Leadership, Position, StreamItem
from worker.mongo.change_stream import MongoChangeStream
from worker.mongo.checkpoints import MongoCheckpoints
from worker.mongo.driver import connected
from worker.mongo.topology import check_server

NAME: Final = "roles"
ROLES: Final[dict[str, list[dict[str, str]]]] = {
    "writer": [{"role": "readWrite", "db": NAME}],
    "reader": [{"role": "read", "db": NAME}],
    "nobody": [],
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A server that asks who one is; its users were made while it did not."""
    folder = tmp_path_factory.mktemp("roles")
    with secantus(folder) as opened, MongoClient[dict[str, Any]](opened.uri) as client:
        client[NAME]["tricks"].insert_one({"_id": 1})
        for user, roles in ROLES.items():
            client.admin.command({"createUser": user, "pwd": "x", "roles": roles})
    with secantus(folder, "--auth") as closed:
        yield closed.address


def target(address: str, user: str) -> Target:
    """The database as a user."""
    options = "authSource=admin&replicaSet=secantus&retryWrites=false"
    return Target(f"mongodb://{user}:x@{address}/?{options}", NAME)


@pytest.mark.slow
async def test_read_and_write_on_the_database_are_enough(address: str) -> None:
    """Nothing of `admin` or `local` is needed: the history's beginning is unknown then, and the stream is followed."""
    async with connected(target(address, "writer"), "pymongo") as database:
        await check_server(database)
        stream = MongoChangeStream(database, ["tricks"])
        assert await stream.oldest() is None
        position = Position(await stream.now())
        items = cast("AsyncGenerator[StreamItem]", stream.follow(position))
        async with asyncio.timeout(20), aclosing(items) as following:
            assert (await anext(following)).position.at >= position.at


@pytest.mark.slow
async def test_who_may_not_read_is_told_what_is_missing(address: str) -> None:
    """M14: the sentence names both actions."""
    async with connected(target(address, "nobody"), "pymongo") as database:
        with pytest.raises(Refused, match="find and changeStream"):
            await check_server(database)


@pytest.mark.slow
async def test_who_may_not_write_is_told_at_the_first_write(address: str) -> None:
    """M13: a checkpoint that cannot be stored is for a person, and is not waited for."""
    async with connected(target(address, "reader"), "pymongo") as database:
        checkpoint = Checkpoint(Position(Timestamp(1, 1)), datetime(2026, 11, 30, tzinfo=UTC))
        with pytest.raises(Refused, match="role"):
            await MongoCheckpoints(database).save(checkpoint, Leadership(1))
