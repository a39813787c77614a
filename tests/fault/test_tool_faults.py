"""Tools on a database that fails: the call ends in time, with the right code, and with both documents or none."""

import os
import signal
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pymongo.asynchronous.database import AsyncDatabase

from brain.config import PREFIX, BrainSettings
from brain.knowledge.connect import SELECTION_SECONDS, Target, open_client
from brain.knowledge.embedding.pinned import PinnedClients
from brain.knowledge.search.service import KnowledgeSearch
from brain.knowledge.settings import load
from brain.once import JOURNAL
from brain.registry import Registry
from brain.tool import AnyTool, ToolContext
from brain.tools import ALL_TOOLS
from tests.support.tool_calls import Nothing, Said, context, data, error, tool
from worker.embedded import EmbeddedServer

GONE: Final = (
    ("search_knowledge", '{"query": "kickflip"}', True),
    ("create_tricklist", '{"title": "Winter"}', True),
    ("save", "", False),
)
"""What is asked of a database that is gone, and whether it may be asked again."""

BOUND: Final = 8.0
"""Seconds: far under the driver's own 30 (a dead socket), far over the tool's one."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server of this file's own, since it is stopped and killed."""
    running = EmbeddedServer.start_or_join(tmp_path_factory.mktemp("tools"))
    yield running
    running.close()


@pytest.fixture
async def database(server: EmbeddedServer) -> AsyncIterator[AsyncDatabase[Any]]:
    """An empty database on it."""
    async with open_client(Target(server.uri, "tools", embedded=True)) as client:
        await client.drop_database("tools")
        yield client["tools"]


@contextmanager
def frozen(server: EmbeddedServer) -> Generator[None]:
    """The server neither answers nor goes away."""
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def writing(server: EmbeddedServer, places: list[str], seconds: float = 1.0) -> AnyTool:
    """A tool that writes two documents, and freezes the server at a place, once."""

    async def handler(asking: ToolContext, _arguments: Nothing) -> Said:
        for name in ("first", "second"):
            if name in places:
                places.remove(name)
                os.kill(server.pid, signal.SIGSTOP)
            await asking.database[name].insert_one({}, session=asking.session)
        if "commit" in places:
            places.remove("commit")
            os.kill(server.pid, signal.SIGSTOP)
        return Said(words="done")

    return tool(handler, Nothing, "save", effect="write", seconds=seconds, idempotent=False)


@pytest.mark.parametrize("place", ["first", "second", "commit"])
async def test_a_frozen_database_holds_no_call(
    server: EmbeddedServer, database: AsyncDatabase[Any], place: str
) -> None:
    """Not even the end of its transaction; the repeated turn then does it, once."""
    registry = Registry([writing(server, [place])])
    began = time.monotonic()
    with frozen(server):
        told = error(await registry.call("save", "", context(database, turn="t1")))
    assert (told["code"], told["retryable"]) == ("timeout", False)
    assert time.monotonic() - began < BOUND

    await database.client.admin.command({"killAllSessions": []})  # what the server's limit (60 s) does by itself
    assert data(await registry.call("save", "", context(database, turn="t1"))) == {"words": "done"}
    assert [await database[name].count_documents({}) for name in ("first", "second", JOURNAL)] == [1, 1, 1]


@pytest.mark.parametrize("asked_before", [True, False])
async def test_a_database_that_is_gone_is_told_as_that(tmp_path: Path, *, asked_before: bool) -> None:
    """As soon as the driver would have given up, not when the tool's time is over; for reads and for writes."""
    server = EmbeddedServer.start_or_join(tmp_path)
    async with open_client(Target(server.uri, "tools", embedded=True)) as client:
        if asked_before:
            await client.admin.command("ping")
        os.kill(server.pid, signal.SIGKILL)
        server.close()
        knowledge = KnowledgeSearch(client["tools"], PinnedClients(load(BrainSettings, {}, PREFIX, embedded=True)))
        asking = replace(context(client["tools"], turn="t1"), knowledge=knowledge)
        registry = Registry([*ALL_TOOLS, writing(server, [], seconds=10.0)])
        for name, arguments, retryable in GONE:
            began = time.monotonic()
            told = error(await registry.call(name, arguments, asking))
            assert (name, told["code"], told["retryable"]) == (name, "unavailable", retryable)
            assert "127.0.0.1" not in told["message"]
            assert time.monotonic() - began < SELECTION_SECONDS + 2.0
