"""A write happens once per (user, turn, tool, arguments): on the real server, with twins, lost answers and kill -9."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from typing import Any, Final

import pytest
from bson import ObjectId
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import DuplicateKeyError

from brain.errors import ToolFailure
from brain.knowledge.connect import Target, open_client
from brain.once import JOURNAL, KEPT
from brain.registry import Registry
from brain.tool import AnyTool, Card, ToolContext
from tests.support.processes import PATIENCE, ROOT, environment
from tests.support.tool_calls import NOW, OTHER_RIDER, RIDER, Said, Wanted, context, data, error, tool

Database = AsyncDatabase[dict[str, Any]]

ARGUMENTS: Final = '{"query": "ollie"}'


@pytest.fixture
async def database(mongo_uri: str, database_name: str) -> AsyncGenerator[Database]:
    """A database of this test's own, opened as the brain opens it."""
    client: AsyncMongoClient[dict[str, Any]] = open_client(Target(mongo_uri, database_name))
    async with client:
        yield client[database_name]


async def two_rows(asking: ToolContext, arguments: Wanted) -> Said:
    """Write two documents that belong together, in the transaction of the call."""
    rows = asking.database["rows"]
    row = await rows.insert_one({"query": arguments.query}, session=asking.session)
    await asking.database["lists"].insert_one({"row": row.inserted_id}, session=asking.session)
    return Said(words=str(row.inserted_id))


def writing(handler: Any = two_rows, **more: Any) -> AnyTool:  # noqa: ANN401 any handler, the fields of a tool
    """A tool that writes."""
    return tool(handler, Wanted, "save_row", effect="write", scope="user", idempotent=False, **more)


async def rows_of(database: Database) -> tuple[int, int, int]:
    """How many documents there are: of the handler's two collections, and of the journal."""
    rows, lists, journal = [await database[name].count_documents({}) for name in ("rows", "lists", JOURNAL)]
    return rows, lists, journal


async def test_a_repeated_turn_gets_the_first_answer(database: Database) -> None:
    """From another process too: nothing is remembered but the journal. However the model wrote the arguments."""
    card = Card("trick_card", {"_id": "1", "name": "Ollie", "rating": 4.5})

    def cards(_result: Said) -> list[Card]:
        return [card]

    def links(_result: Said) -> list[str]:
        return ["https://video.example/1"]

    spellings = [ARGUMENTS, '{"limit": "5", "query": " ollie "}', {"query": "ollie", "sport": None}]
    registries = [Registry([writing(cards=cards, links=links)]) for _ in spellings]
    outcomes = [
        await registry.call("save_row", text, context(database, turn="t1"))
        for registry, text in zip(registries, spellings, strict=True)
    ]
    assert outcomes[0].ok
    assert outcomes[0].cards == (card,)
    assert outcomes[0].links == ("https://video.example/1",)
    assert outcomes[1:] == [outcomes[0]] * 2
    assert await rows_of(database) == (1, 1, 1)


async def test_another_turn_user_tool_or_argument_is_another_call(database: Database) -> None:
    """And without the name of a turn nothing is remembered."""
    other = tool(two_rows, Wanted, "other_row", effect="write", scope="user")
    registry = Registry([writing(), other])
    calls = [
        ("save_row", ARGUMENTS, context(database, turn="t1")),
        ("save_row", ARGUMENTS, context(database, turn="t2")),
        ("save_row", ARGUMENTS, context(database, turn="t1", user=OTHER_RIDER)),
        ("other_row", ARGUMENTS, context(database, turn="t1")),
        ("save_row", '{"query": "kickflip"}', context(database, turn="t1")),
        ("save_row", ARGUMENTS, context(database)),
        ("save_row", ARGUMENTS, context(database)),
    ]
    assert len({data(await registry.call(*call))["words"] for call in calls}) == 7
    assert await rows_of(database) == (7, 7, 5)


async def test_a_rider_in_capitals_is_the_same_rider(database: Database) -> None:
    """Hex ids in either case are one id, in the journal too."""
    registry = Registry([writing()])
    asked = [context(database, turn="t1", user=user) for user in (RIDER, RIDER.upper())]
    first, again = [await registry.call("save_row", ARGUMENTS, asking) for asking in asked]
    assert first == again
    assert await rows_of(database) == (1, 1, 1)


async def test_of_twins_one_runs(database: Database) -> None:
    """Ten at the same moment, in as many processes' registries: one write, one answer."""
    registries = [Registry([writing()]) for _ in range(10)]
    outcomes = await asyncio.gather(
        *(registry.call("save_row", ARGUMENTS, context(database, turn="t1")) for registry in registries)
    )
    assert len({data(outcome)["words"] for outcome in outcomes}) == 1
    assert await rows_of(database) == (1, 1, 1)


async def test_a_failure_leaves_nothing_and_may_be_tried_again(database: Database) -> None:
    """It changed nothing, so it is not remembered either."""
    fails = [True]

    async def handler(asking: ToolContext, arguments: Wanted) -> Said:
        said = await two_rows(asking, arguments)
        if fails.pop():
            raise ToolFailure(code="limit_reached", message="three lists are free")
        return said

    registry = Registry([writing(handler)])
    asking = context(database, turn="t1")
    assert error(await registry.call("save_row", ARGUMENTS, asking))["code"] == "limit_reached"
    assert await rows_of(database) == (0, 0, 0)
    fails.append(False)
    assert data(await registry.call("save_row", ARGUMENTS, asking))
    assert await rows_of(database) == (1, 1, 1)


@pytest.mark.parametrize("turn", ["t1", None])
@pytest.mark.parametrize(
    ("raised", "code"), [(ValueError("x"), "internal"), (DuplicateKeyError("of the handler's own"), "internal")]
)
async def test_a_bug_halfway_leaves_nothing(database: Database, raised: Exception, code: str, turn: str | None) -> None:
    """Of two documents neither."""

    async def handler(asking: ToolContext, arguments: Wanted) -> Said:
        await two_rows(asking, arguments)
        raise raised

    outcome = await Registry([writing(handler)]).call("save_row", ARGUMENTS, context(database, turn=turn))
    assert error(outcome)["code"] == code
    assert await rows_of(database) == (0, 0, 0)


@pytest.mark.parametrize(("idempotent", "retryable"), [(True, True), (False, False)])
async def test_a_write_that_hangs_leaves_nothing(database: Database, idempotent: bool, retryable: bool) -> None:  # noqa: FBT001
    """And is called retryable only when repeating it does no harm."""

    async def handler(asking: ToolContext, arguments: Wanted) -> Said:
        await two_rows(asking, arguments)
        await asyncio.Event().wait()
        raise AssertionError

    registry = Registry([tool(handler, Wanted, "save_row", effect="write", seconds=1.0, idempotent=idempotent)])
    told = error(await registry.call("save_row", ARGUMENTS, context(database, turn="t1")))
    assert (told["code"], told["retryable"]) == ("timeout", retryable)
    assert await rows_of(database) == (0, 0, 0)


async def test_a_conflict_with_another_write_is_tried_again(database: Database) -> None:
    """Within the deadline: the aborted attempt has left nothing, so it is safe."""
    counter = database["counters"]
    await counter.insert_one({"_id": 1, "n": 0})
    tries: list[int] = []

    async def handler(asking: ToolContext, _arguments: Wanted) -> Said:
        tries.append(1)
        await asking.database["rows"].insert_one({}, session=asking.session)
        if len(tries) == 1:  # somebody else is first
            await counter.update_one({"_id": 1}, {"$inc": {"n": 1}})
        await counter.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=asking.session)
        return Said()

    outcome = await Registry([writing(handler)]).call("save_row", ARGUMENTS, context(database, turn="t1"))
    assert outcome.ok, outcome.text
    assert len(tries) == 2
    assert await counter.find_one() == {"_id": 1, "n": 2}
    assert await rows_of(database) == (1, 0, 1)


async def test_the_journal_forgets(database: Database) -> None:
    """By an index that is ensured before the first write."""
    await Registry([writing()]).call("save_row", ARGUMENTS, context(database, turn="t1"))
    indexes = await database[JOURNAL].index_information()
    assert indexes["expiry"]["expireAfterSeconds"] == KEPT.total_seconds()
    row = await database[JOURNAL].find_one()
    assert row is not None
    assert row["at"] == NOW
    assert row["userId"] == RIDER  # so that a rider's rows can be found when the account goes


async def test_where_the_index_cannot_be_made_a_rider_is_still_served(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator is told."""
    await database[JOURNAL].create_index("at", name="expiry")  # another one of that name: ours cannot be made
    with caplog.at_level(logging.WARNING):
        outcome = await Registry([writing()]).call("save_row", ARGUMENTS, context(database, turn="t1"))
    assert outcome.ok, outcome.text
    assert [vars(record)["action"] for record in caplog.records] == ["journal_index"]


@pytest.mark.skipif("TEST_ATLAS_URI" in os.environ, reason="ends the sessions of a dead process by force")
@pytest.mark.parametrize("place", ["before", "between", "after", "committed"])
async def test_a_process_that_is_killed_leaves_both_documents_or_none(
    mongo_uri: str, database: Database, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the repeated turn, in another process, ends with exactly one write."""
    monkeypatch.setattr("brain.once.PATIENCE", 0.2)
    child = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tests.support.dying_writer", mongo_uri, database.name, place],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    rows, lists, journal = await rows_of(database)
    assert rows == lists == journal == (1 if place == "committed" else 0)
    registry = Registry([writing()])
    outcome = await registry.call("save_row", ARGUMENTS, context(database, turn="t1"))
    if place != "committed":  # the dead process's transaction is open until the server's limit
        told = error(outcome)
        assert (told["code"], told["retryable"]) == ("conflict", True)
        assert await rows_of(database) == (0, 0, 0)
        await database.client.admin.command({"killAllSessions": []})  # what the limit (60 s) does by itself
        outcome = await registry.call("save_row", ARGUMENTS, context(database, turn="t1"))
    assert ObjectId.is_valid(data(outcome)["words"])
    assert await rows_of(database) == (1, 1, 1)
