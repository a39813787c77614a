"""The registry: every tool once, in a stable order, frozen at start; a call never raises, but for cancellation.

What a turn may call is a registry of its own (`permitted`), made before any document is read: no text that comes later
can add to it.
"""

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import pymongo
from bson.errors import BSONError
from pymongo.errors import PyMongoError

from brain.arguments import canonical, digest, glimpse, near, shown, understood
from brain.errors import FailureCode, ToolFailure, as_failure
from brain.knowledge.connect import SELECTION_SECONDS, is_reachable
from brain.knowledge.domain.ids import hex_id
from brain.knowledge.errors import KnowledgeError, Unreachable
from brain.knowledge.log import log, stack_of
from brain.knowledge.mongo_errors import as_knowledge_error
from brain.knowledge.redact import Redactor
from brain.once import Answer, Call, Journal
from brain.results import TooLarge, encoded, refusal
from brain.tool import AnyTool, Arguments, Card, Effect, Result, ToolContext

LONGEST_DESCRIPTION: Final = 1_024  # characters: OpenAI's limit for a function
LEAST_BYTES: Final = 1_024
GRACE: Final = 0.5
"""Seconds beyond a tool's own in which the driver must be done too: aborting a transaction would wait for a frozen
server, and an abandoned query would go on there."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CALLERS_OWN: Final = frozenset({"user_id", "userid", "user", "owner_id", "companion_id", "turn_id"})
"""Names that no argument may have: who asks comes from the caller."""

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: JSON text for the model (`{"ok": true, "data": …}` or `{"ok": false, "error": …}`); cards.

    Beside the data stand a `label`, that it is data, and `truncated` when some of it was left out.
    `links` are addresses outside of the site that the reply may show (`guard.Links.asked`). `fault` is what went wrong
    on our side, for whoever operates this; a model is told the text alone.
    """

    ok: bool
    text: str
    cards: tuple[Card, ...] = ()
    code: FailureCode | None = None
    links: tuple[str, ...] = ()
    fault: KnowledgeError | None = None


@dataclass(frozen=True, slots=True)
class CallLog:
    """What the log of a call tells; with `arguments` (BRAIN_LOG_ARGUMENTS=1) also what was asked, secrets masked."""

    arguments: bool = False
    clock: Callable[[], float] = time.monotonic
    reference: Callable[[], str] = lambda: secrets.token_hex(4)


class Registry:
    """The tools by name. Raises ValueError when two tools have one name, or one is not well formed."""

    def __init__(self, tools: Sequence[AnyTool], calls: CallLog | None = None, journal: Journal | None = None) -> None:
        found: dict[str, AnyTool] = {}
        for tool in tools:
            if tool.name in found:
                message = f"two tools are named {tool.name}"
                raise ValueError(message)
            found[tool.name] = _well_formed(tool)
        self._tools: Final = MappingProxyType(found)
        self._calls: Final = calls or CallLog()
        self._journal: Final = journal or Journal()

    def __iter__(self) -> Iterator[AnyTool]:
        """The tools in the order they were given."""
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def permitted(
        self, *, signed_in: bool, effects: Collection[Effect] = ("read", "write"), names: Collection[str] | None = None
    ) -> "Registry":
        """The tools that a turn may call, in the same order: the caller decides before the model reads anything.

        Without a user none of scope `user`; `names` narrows further. Raises ValueError for a name that is no tool's.
        """
        unknown = sorted(set(names or ()) - set(self._tools))
        if unknown:
            message = f"there is no tool named {unknown[0]}"
            raise ValueError(message)
        kept = [
            tool
            for tool in self
            if (signed_in or tool.scope == "public")
            and tool.effect in effects
            and (names is None or tool.name in names)
        ]
        return Registry(kept, self._calls, self._journal)

    async def call(self, name: str, arguments: str | Mapping[str, object], context: ToolContext) -> Outcome:
        """Run a tool on a model's arguments (JSON text, or already parsed); every failure is an outcome.

        A write runs in a transaction; with a turn id it happens once, and a repeat gives the first answer again.
        """
        began = self._calls.clock()
        parsed: Arguments | None = None
        code: str = "cancelled"
        try:
            tool = self._tool(name)
            context = _trusted(context)
            _signed_in(tool, context)
            work = self._work(tool, parsed := understood(tool.arguments, arguments))
            answer = await _bounded(tool, context, work)
            outcome = Outcome(ok=True, text=answer.text, cards=answer.cards, links=answer.links)
            code = "ok"
        except Exception as exc:  # noqa: BLE001 the model is told of a bug as of any failure; the log holds its stack
            outcome = _failed(self._failure(exc, name))
            code = str(outcome.code)
        finally:
            self._tell(name, parsed or arguments, context, code, began)
        return outcome

    def _tool(self, name: str) -> AnyTool:
        tool = self._tools.get(name)
        if tool is None:
            names = ", ".join(self._tools) or "none"
            message = f"there is no tool named {shown(name)}{near(str(name), self._tools)}; the tools are {names}"
            raise ToolFailure(code="unknown_tool", message=message)
        return tool

    def _work(self, tool: AnyTool, parsed: Arguments) -> Callable[[ToolContext], Any]:
        async def work(context: ToolContext) -> Answer:
            return _answer(tool, await tool.handler(context, parsed))

        async def write(context: ToolContext) -> Answer:
            turn = context.turn_id
            call = Call(tool.name, canonical(parsed), context.user_id, turn) if turn else None
            return await self._journal.once(call, context, work)

        return write if tool.effect == "write" else work

    def _failure(self, exc: Exception, name: str) -> ToolFailure:
        """What the model is told. Only our own words: an exception may quote documents, or the database."""
        if isinstance(exc, ToolFailure):
            return exc
        known = as_knowledge_error(exc, f"tool {name}") if isinstance(exc, PyMongoError | BSONError) else exc
        failure = as_failure(known) if isinstance(known, KnowledgeError) else None
        if failure is not None:
            log(_LOGGER, logging.WARNING, "tool_unavailable", str(known), tool=name, kind=type(known).__name__)
            tool = self._tools[name]
            repeatable = failure.retryable and (tool.effect == "read" or tool.idempotent)
            return ToolFailure(failure.code, str(failure), retryable=repeatable, fault=failure.fault)
        reference = self._calls.reference()
        words = {"words": str(exc)} if self._calls.arguments else {}  # they may quote what was asked, or a document
        message = f"the tool {name} failed with {type(exc).__name__}; this is a bug"
        log(_LOGGER, logging.ERROR, "tool_bug", message, reference=reference, stack=stack_of(exc), tool=name, **words)
        return ToolFailure("internal", f"the tool has failed (reference {reference}); answer without it")

    def _tell(self, name: str, arguments: object, context: ToolContext, code: str, began: float) -> None:
        fields: dict[str, object] = {
            "tool": shown(name),
            "arguments_digest": digest(arguments),
            "user": context.user_id,
            "turn": context.turn_id,
            "outcome": code,
            "ms": round(1000 * (self._calls.clock() - began), 1),
        }
        if self._calls.arguments:
            fields["arguments"] = Redactor()(_readable(arguments))
        log(_LOGGER, logging.INFO, "tool_call", f"{shown(name)}: {code}", **fields)


def _well_formed(tool: AnyTool) -> AnyTool:
    """The tool, when every consumer can take it; raises ValueError."""
    fields = {name.lower() for name in tool.arguments.model_fields}
    rules = {
        "its name is not of a-z, 0-9 and _, up to 64": _NAME.fullmatch(tool.name),
        f"its description is blank or longer than {LONGEST_DESCRIPTION}": tool.description.strip()
        and len(tool.description) <= LONGEST_DESCRIPTION,
        "its arguments allow unknown names": tool.arguments.model_config.get("extra") == "forbid",
        "one of its arguments says who asks, which the caller does": not fields & _CALLERS_OWN,
        f"its time or size is no limit (more than 0 s, at least {LEAST_BYTES} bytes)": tool.seconds > 0
        and tool.most_bytes >= LEAST_BYTES,
        "it reads, so it cannot be destructive": tool.effect == "write" or not tool.destructive,
    }
    broken = [rule for rule, holds in rules.items() if not holds]
    if broken:
        message = f"the tool {shown(tool.name)} cannot be registered: {'; '.join(broken)}"
        raise ValueError(message)
    return tool


def _trusted(context: ToolContext) -> ToolContext:
    """The context without a user id that is none (deny by default), and else with the one spelling of it."""
    return replace(context, user_id=hex_id(context.user_id))


def _signed_in(tool: AnyTool, context: ToolContext) -> None:
    if tool.scope == "user" and context.user_id is None:
        message = "this needs a rider who is signed in, and nobody is; ask them to sign in"
        raise ToolFailure(code="not_signed_in", message=message)


async def _bounded(tool: AnyTool, context: ToolContext, work: Callable[[ToolContext], Any]) -> Answer:
    """The answer within the tool's time; raises ToolFailure (`timeout`), and Unreachable when no server is known.

    The driver would say so by itself after SELECTION_SECONDS, but waits as long as a `pymongo.timeout` lets it.
    """
    loop = asyncio.get_running_loop()
    limit, unreachable = asyncio.timeout(tool.seconds), asyncio.Event()

    def look() -> None:
        if not is_reachable(context.database):
            unreachable.set()
            limit.reschedule(loop.time())

    looking = loop.call_later(SELECTION_SECONDS, look)
    try:
        with pymongo.timeout(tool.seconds + GRACE):
            async with limit:
                return await work(context)
    except TimeoutError:
        if not limit.expired():
            raise  # the handler's own: a bug
    finally:
        looking.cancel()
    if unreachable.is_set():
        message = f"tool {tool.name}: no server of the database answers; check that it runs and is reachable"
        raise Unreachable(message)
    if tool.effect == "read" or tool.idempotent:
        message = f"it took longer than {tool.seconds:g} seconds"
        raise ToolFailure(code="timeout", message=message, retryable=True)
    message = f"it took longer than {tool.seconds:g} seconds, and may have been done or not; look before you try again"
    raise ToolFailure(code="timeout", message=message)


def _answer(tool: AnyTool, result: Result) -> Answer:
    if not isinstance(result, tool.result):
        message = f"the tool {tool.name} gave a {type(result).__name__}"
        raise TypeError(message)
    try:
        text = encoded(result, tool.most_bytes).text
    except TooLarge:
        message = "the result is too long to tell; ask for less at a time"
        raise ToolFailure(code="limit_reached", message=message) from None
    return Answer(text, tuple(tool.cards(result)), tuple(tool.links(result)))


def _readable(arguments: object) -> str:
    """What was asked, for the log; what was refused may be of any shape and size."""
    if isinstance(arguments, Arguments):
        return canonical(arguments)
    return arguments if isinstance(arguments, str) else glimpse(arguments)


def _failed(failure: ToolFailure) -> Outcome:
    text = refusal(failure.code, str(failure), retryable=failure.retryable)
    return Outcome(ok=False, text=text, code=failure.code, fault=failure.fault)
