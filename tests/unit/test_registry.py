"""A call never raises: every failure is told in one envelope, with a code, in words that hide what must be hidden."""

import asyncio
import json
import logging
from typing import Any, Final

import pytest
from bson import MaxKey
from pydantic import ConfigDict
from pymongo.errors import AutoReconnect, OperationFailure

from brain.errors import ToolFailure
from brain.guard import LABEL
from brain.knowledge import errors
from brain.registry import CallLog, Registry
from brain.tool import Arguments, Card, Result, ToolContext
from tests.support.tool_calls import RIDER, Nothing, Said, context, data, error, say_query, tool

REFERENCE: Final = "c0ffee00"


def raising(exc: Exception, **more: Any) -> Registry:  # noqa: ANN401 the fields of a tool
    """A registry whose one tool raises."""

    async def handler(_context: ToolContext, _arguments: Nothing) -> Said:
        raise exc

    return Registry([tool(handler, Nothing, **more)], CallLog(reference=lambda: REFERENCE))


def itself() -> list[Any]:
    """A list that holds itself."""
    found: list[Any] = []
    found.append(found)
    return found


async def test_a_call_tells_its_result_and_its_cards() -> None:
    """`{"ok": true, "data": …}`, camelCase keys, what is absent left out."""
    card = Card("trick_card", {"_id": "1", "name": "Ollie"})

    async def handler(_context: ToolContext, _arguments: Nothing) -> Said:
        return Said(many_things=[1])

    def links(_result: Said) -> list[str]:
        return ["https://video.example/1"]

    def cards(_result: Said) -> list[Card]:
        return [card]

    found = Registry([tool(handler, Nothing, cards=cards, links=links)])
    outcome = await found.call("find_things", "", context())
    assert json.loads(outcome.text) == {"ok": True, "label": LABEL, "data": {"manyThings": [1]}}
    assert outcome.cards == (card,)
    assert outcome.links == ("https://video.example/1",)


def test_two_tools_of_one_name_are_refused() -> None:
    """At start, not at the first call."""
    with pytest.raises(ValueError, match="two tools are named find_things"):
        Registry([tool(), tool()])


class Loose(Arguments):
    """Arguments that take any name."""

    model_config = ConfigDict(extra="allow")


class Impostor(Arguments):
    """Arguments that say who asks."""

    user_id: str


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"name": "Find-Things"}, "its name"),
        ({"name": "f" * 65}, "its name"),
        ({"name": "find_thіngs"}, "its name"),  # noqa: RUF001 a Cyrillic i
        ({"arguments": Loose}, "unknown names"),
        ({"arguments": Impostor}, "who asks"),
        ({"seconds": 0.0}, "no limit"),
        ({"most_bytes": 10}, "no limit"),
        ({"destructive": True}, "destructive"),
    ],
)
def test_a_tool_that_some_consumer_could_not_take_is_refused(wrong: dict[str, Any], rule: str) -> None:
    """With the reason."""
    with pytest.raises(ValueError, match=rule):
        Registry([tool(**wrong)])


async def test_the_registry_is_frozen_and_keeps_its_order() -> None:
    """Nothing is added after the start, and a document's list changes nothing either."""
    tools = [tool(name=name) for name in ("b_tool", "a_tool", "c_tool")]
    registry = Registry(tools)
    tools.append(tool(name="late_tool"))
    assert [each.name for each in registry] == ["b_tool", "a_tool", "c_tool"]
    with pytest.raises(TypeError):
        registry._tools["late_tool"] = tool(name="late_tool")  # pyright: ignore[reportIndexIssue, reportPrivateUsage]
    assert error(await registry.call("late_tool", "{}", context()))["code"] == "unknown_tool"


@pytest.mark.parametrize(
    ("called", "hint"),
    [
        ("find_thing", "did you mean find_things?"),
        ("FIND_THINGS", "did you mean find_things?"),
        ("find_thіngs", "find_th\\u0456ngs"),  # noqa: RUF001 a Cyrillic i: it shows
        ("", "the tools are find_things"),
        ("x" * 10_000_000, "the tools are find_things"),
        ("\ud800", "the tools are find_things"),
    ],
)
async def test_an_unknown_tool_is_told_the_names_there_are(called: str, hint: str) -> None:
    """Shortly, and without running anything."""
    told = error(await Registry([tool()]).call(called, "{}", context()))
    assert told["code"] == "unknown_tool"
    assert hint in told["message"]
    assert len(told["message"]) < 300


@pytest.mark.parametrize("user", [None, "", "kari", "64b0000000000000000000a", {"$gt": ""}])
async def test_a_riders_tool_needs_a_rider(user: Any) -> None:  # noqa: ANN401 also what no caller should give
    """A malformed id is nobody."""
    if user is not None and not isinstance(user, str):
        user = str(user)
    registry = Registry([tool(scope="user")])
    assert error(await registry.call("find_things", '{"query": "x"}', context(user=user)))["code"] == "not_signed_in"
    assert data(await registry.call("find_things", '{"query": "x"}', context(user=RIDER)))


async def test_a_malformed_user_reaches_no_handler() -> None:
    """A public tool runs for nobody."""

    async def who(asking: ToolContext, _arguments: Nothing) -> Said:
        return Said(words=str(asking.user_id))

    outcome = await Registry([tool(who, Nothing)]).call("find_things", "", context(user="$where"))
    assert data(outcome) == {"words": "None"}


@pytest.mark.parametrize(
    ("raised", "code", "retryable"),
    [
        (ToolFailure("not_found", "no such list"), "not_found", False),
        (ToolFailure("conflict", "again", retryable=True), "conflict", True),
        (errors.Unavailable("x"), "unavailable", True),
        (errors.Unreachable("x"), "unavailable", True),
        (errors.Throttled("x"), "unavailable", True),
        (errors.Malformed("x"), "unavailable", True),
        (errors.IndexNotReady("x"), "index_not_ready", True),
        (errors.IndexMissing("x"), "index_missing", False),
        (errors.IndexUnusable("x"), "index_missing", False),
        (errors.PinMismatch("x"), "pin_mismatch", False),
        (errors.Refused("x"), "unavailable", False),
        (errors.Unsupported("x"), "unavailable", False),
        (errors.ConfigurationFault("x"), "unavailable", False),
        (errors.Poison("x"), "invalid_arguments", False),
        (errors.Fatal("x"), "internal", False),
        (AutoReconnect("mongodb://u:secret@h"), "unavailable", True),
        (OperationFailure("secret", 91), "unavailable", True),
        (OperationFailure("secret", 13), "unavailable", False),
        (OperationFailure("secret", 2), "internal", False),
        (ValueError("secret"), "internal", False),
        (TimeoutError("secret"), "internal", False),
        (RecursionError("secret"), "internal", False),
        (UnicodeEncodeError("utf-8", "secret", 0, 1, "secret"), "internal", False),
    ],
)
async def test_every_error_has_its_code(raised: Exception, code: str, retryable: bool) -> None:  # noqa: FBT001
    """By type, and never in the words of the database or of an exception."""
    told = error(await raising(raised).call("find_things", "{}", context()))
    assert (told["code"], told["retryable"]) == (code, retryable)
    assert "secret" not in told["message"]
    assert (REFERENCE in told["message"]) == (code == "internal")


async def test_a_bug_is_logged_with_its_stack_and_told_by_reference(caplog: pytest.LogCaptureFixture) -> None:
    """The words of the exception may quote a document: they are logged on request only."""
    with caplog.at_level(logging.INFO):
        await raising(ValueError("a document's words")).call("find_things", "{}", context())
    bug = next(vars(record) for record in caplog.records if vars(record)["action"] == "tool_bug")
    assert bug["fields"]["reference"] == REFERENCE
    assert "in handler" in bug["fields"]["stack"]
    assert "a document's words" not in str(bug)


async def test_a_tool_that_hangs_is_ended() -> None:
    """After its own time; what it awaited is cancelled."""
    ended: list[str] = []

    async def handler(_context: ToolContext, _arguments: Nothing) -> Said:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")
        raise AssertionError

    registry = Registry([tool(handler, Nothing, seconds=0.01)])
    told = error(await registry.call("find_things", "{}", context()))
    assert (told["code"], told["retryable"], ended) == ("timeout", True, ["ended"])


async def test_cancellation_goes_through_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """It is the caller's wish, no failure of the tool."""
    started = asyncio.Event()

    async def handler(_context: ToolContext, _arguments: Nothing) -> Said:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    with caplog.at_level(logging.INFO):
        task = asyncio.create_task(Registry([tool(handler, Nothing)]).call("find_things", "{}", context()))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [vars(record)["fields"]["outcome"] for record in caplog.records] == ["cancelled"]


async def test_a_handler_that_gives_something_else_is_a_bug() -> None:
    """The result model is a promise to MCP's clients."""

    class Other(Result):
        x: int = 1

    async def handler(_context: ToolContext, _arguments: Nothing) -> Result:
        return Other()

    assert error(await Registry([tool(handler, Nothing)]).call("find_things", "", context()))["code"] == "internal"


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        (MaxKey(), "internal"),
        (object(), "internal"),
        (itself(), "limit_reached"),  # it is deeper than anything
        ({f"key {n}": n for n in range(5_000)}, "limit_reached"),
        (["word " * 20_000] * 1_000, None),  # 100 MB
    ],
)
async def test_whatever_a_handler_gives_the_answer_is_small_valid_json(odd: object, code: str | None) -> None:
    """A cycle, a type without a form, far too much."""

    async def handler(_context: ToolContext, _arguments: Nothing) -> Said:
        return Said(words=odd)

    found = tool(handler, Nothing)
    outcome = await Registry([found]).call("find_things", "", context())
    assert outcome.code == code
    assert json.loads(outcome.text)
    assert len(outcome.text) <= found.most_bytes


async def test_every_call_is_logged_without_its_arguments(caplog: pytest.LogCaptureFixture) -> None:
    """Tool, digest, user, duration, outcome."""
    times = iter([1.0, 1.25])
    registry = Registry([tool()], CallLog(clock=lambda: next(times)))
    with caplog.at_level(logging.INFO):
        await registry.call("find_things", '{"query": "my secret spot"}', context(turn="t1"))
    (record,) = caplog.records
    assert vars(record)["action"] == "tool_call"
    fields = vars(record)["fields"]
    assert {key: fields[key] for key in ("tool", "user", "turn", "outcome", "ms")} == {
        "tool": "find_things", "user": RIDER, "turn": "t1", "outcome": "ok", "ms": 250.0,
    }  # fmt: skip
    assert len(fields["arguments_digest"]) == 12
    assert "my secret spot" not in str(vars(record))


async def test_arguments_are_logged_on_request_with_secrets_masked(caplog: pytest.LogCaptureFixture) -> None:
    """BRAIN_LOG_ARGUMENTS=1."""
    registry = Registry([tool()], CallLog(arguments=True))
    with caplog.at_level(logging.INFO):
        await registry.call("find_things", '{"query": "ollie sk-or-0123456789abcdef"}', context())
        await registry.call("find_things", '{"query": ', context())
    told = [vars(record)["fields"]["arguments"] for record in caplog.records]
    assert "ollie ***" in told[0]
    assert told[1] == '{"query": '


@pytest.mark.parametrize("deep", [1, 10_000])
async def test_arguments_that_came_parsed_and_were_refused_have_a_digest_too(
    caplog: pytest.LogCaptureFixture, deep: int
) -> None:
    """Of what came, whatever its shape and size; another refusal has another one."""
    nested: object = "x"
    for _ in range(deep):
        nested = [nested]
    odd: list[Any] = [{}, {"q": 1}, {"q": "1"}, {"query": nested}, {"a": {}, "b": 1}, {"a": {"b": 1}}, 10**5000]
    registry = Registry([tool()])
    with caplog.at_level(logging.INFO):
        for arguments in [*odd, *odd]:
            assert not (await registry.call("find_things", arguments, context())).ok
    digests = [vars(record)["fields"]["arguments_digest"] for record in caplog.records]
    assert digests[: len(odd)] == digests[len(odd) :]
    assert len(set(digests)) == len(odd)
    assert "0" * 12 not in digests


async def test_equal_arguments_have_one_digest(caplog: pytest.LogCaptureFixture) -> None:
    """However the model wrote them."""
    registry = Registry([tool()])
    with caplog.at_level(logging.INFO):
        for text in ('{"query":"a","limit":5}', '{ "limit": "5", "query": " a ", "sport": null }', '{"query":"b"}'):
            assert (await registry.call("find_things", text, context())).ok
    first, second, other = (vars(record)["fields"]["arguments_digest"] for record in caplog.records)
    assert first == second != other


async def test_a_turn_calls_only_what_was_permitted() -> None:
    """The rest does not exist for it, whatever a document says."""
    ran: list[str] = []

    async def handler(_context: ToolContext, _arguments: Nothing) -> Said:
        ran.append("ran")
        return Said()

    registry = Registry(
        [
            tool(handler, Nothing, name="look"),
            tool(handler, Nothing, name="my_lists", scope="user"),
            tool(handler, Nothing, name="save", scope="user", effect="write"),
        ]
    )
    names = [
        [each.name for each in registry.permitted(signed_in=True)],
        [each.name for each in registry.permitted(signed_in=False)],
        [each.name for each in registry.permitted(signed_in=True, effects=["read"])],
        [each.name for each in registry.permitted(signed_in=True, names=["save"])],
    ]
    assert names == [["look", "my_lists", "save"], ["look"], ["look", "my_lists"], ["save"]]
    told = error(await registry.permitted(signed_in=True, effects=["read"]).call("save", "{}", context()))
    assert (told["code"], ran) == ("unknown_tool", [])
    assert "save;" not in told["message"].split("the tools are")[1]
    with pytest.raises(ValueError, match="no tool named lok"):
        registry.permitted(signed_in=True, names=["lok"])


async def test_say_query_is_called_with_what_was_understood() -> None:
    """Blank text around a word is not part of it."""
    outcome = await Registry([tool(say_query)]).call("find_things", {"query": "  ollie "}, context())
    assert data(outcome) == {"words": "ollie"}
