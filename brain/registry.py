"""The registry: every tool once, in a stable order, frozen at start; a call never raises."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from brain.errors import FailureCode, ToolFailure
from brain.tool import Arguments, Card, Result, Tool, ToolContext

AnyTool = Tool[Any, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: JSON text for the model (`{"ok": true, "data": …}` or `{"ok": false, "error": …}`); cards."""

    ok: bool
    text: str
    cards: tuple[Card, ...] = ()
    code: FailureCode | None = None


class Registry:
    """The tools by name. Raises ValueError when two tools have one name."""

    def __init__(self, tools: Sequence[AnyTool]) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            if tool.name in self._tools:
                message = f"two tools are named {tool.name}"
                raise ValueError(message)
            self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[AnyTool]:
        """The tools in the order they were given."""
        return iter(self._tools.values())

    async def call(self, name: str, arguments: str | Mapping[str, object], context: ToolContext) -> Outcome:
        """Run a tool on a model's arguments (JSON text, or already parsed); every failure is an outcome."""
        try:
            tool = self._tools[name]
            parsed: Arguments = tool.arguments.model_validate(
                json.loads(arguments) if isinstance(arguments, str) else arguments
            )
            result: Result = await asyncio.wait_for(tool.handler(context, parsed), tool.seconds)
        except ToolFailure as exc:
            return failed(exc)
        except ValidationError as exc:
            return failed(ToolFailure("invalid_arguments", str(exc.errors()[0]["msg"])))
        data = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return Outcome(ok=True, text=json.dumps({"ok": True, "data": data}), cards=tuple(tool.cards(result)))


def failed(failure: ToolFailure) -> Outcome:
    """The outcome of a failure."""
    error = {"code": failure.code, "message": str(failure), "retryable": failure.retryable}
    return Outcome(ok=False, text=json.dumps({"ok": False, "error": error}), code=failure.code)
