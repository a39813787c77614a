"""Tools made for tests, and a context to call them in."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, Literal, cast

from pydantic import Field
from pymongo.asynchronous.database import AsyncDatabase

from brain.registry import Outcome
from brain.tool import AnyTool, Arguments, Id, Knowledge, Result, Tool, ToolContext, Words

RIDER: Final = "64b0000000000000000000aa"
OTHER_RIDER: Final = "64b0000000000000000000bb"
NOW: Final = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Wanted(Arguments):
    """Arguments of every common kind."""

    query: Words
    sport: Literal["bmx", "surfing"] | None = None
    limit: int = Field(default=5, ge=1, le=10)
    list_id: Id | None = None


class Nothing(Arguments):
    """No arguments."""


class Said(Result):
    """Whatever a test wants told."""

    words: Any = None
    many_things: list[Any] | None = None


async def say_query(_context: ToolContext, arguments: Wanted) -> Said:
    """Tell the query again."""
    return Said(words=arguments.query)


def tool(
    handler: Callable[[ToolContext, Any], Awaitable[Result]] = say_query,
    arguments: type[Arguments] = Wanted,
    name: str = "find_things",
    **more: Any,  # noqa: ANN401 the fields of a tool
) -> AnyTool:
    """A tool for a test."""
    return Tool(name=name, description="Find things.", arguments=arguments, result=Said, handler=handler, **more)


def context(
    database: AsyncDatabase[Any] | None = None, *, user: str | None = RIDER, turn: str | None = None
) -> ToolContext:
    """A context; without a database only for tools that use none."""
    return ToolContext(
        cast("AsyncDatabase[Any]", database), cast("Knowledge", None), lambda: NOW, user_id=user, turn_id=turn
    )


def error(outcome: Outcome) -> dict[str, Any]:
    """The error of a failed call, after a check of the envelope."""
    told = json.loads(outcome.text)
    assert not outcome.ok
    assert set(told) == {"ok", "error"}
    assert told["ok"] is False
    assert set(told["error"]) == {"code", "message", "retryable"}
    assert told["error"]["code"] == outcome.code
    return cast("dict[str, Any]", told["error"])


def data(outcome: Outcome) -> dict[str, Any]:
    """The data of a call that did it."""
    assert outcome.ok, outcome.text
    return cast("dict[str, Any]", json.loads(outcome.text)["data"])
