"""A scripted model that does whatever a document says, and the smallest loop around it.

The proof of the guard must not trust a model's goodness: this one obeys every order in every text that it reads, tells
everything that it has read, and says every sentence that it is told to say. An order is `CALL name {json}` or `SAY …`
up to the end of the line.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from brain.guard import Fence, Links, safe_reply
from brain.registry import Outcome, Registry
from brain.tool import ToolContext

ROUNDS: Final = 6
_CALL: Final = re.compile(r"CALL (\w+) (\{.*?\})(?=$|\s*(?:CALL|SAY|<|…))", re.MULTILINE)
_SAY: Final = re.compile(r"SAY ([^\n]*)")

Call = tuple[str, str]
"""A tool's name and the JSON text of its arguments."""


@dataclass(slots=True)
class ObedientModel:
    """Begins with what the rider asked for, then obeys what it reads."""

    asked: Sequence[Call]
    made: list[Call] = field(default_factory=list[Call])

    def calls(self, read: Sequence[str]) -> list[Call]:
        """Every call that was asked for or ordered and is not made yet."""
        ordered = [(str(name), str(arguments)) for text in read for name, arguments in _CALL.findall(text)]
        wanted = list(dict.fromkeys(call for call in [*self.asked, *ordered] if call not in self.made))
        self.made += wanted
        return wanted

    @staticmethod
    def reply(read: Sequence[str]) -> str:
        """Everything that it was told to say, and everything that it knows."""
        orders = [sentence for text in read for sentence in _SAY.findall(text)]
        return "\n\n".join([*orders, *read])


@dataclass(slots=True)
class Turn:
    """What happened: what the model was shown, what it called and got, what the rider gets."""

    shown: list[str] = field(default_factory=list[str])
    outcomes: list[tuple[Call, Outcome]] = field(default_factory=list[tuple[Call, Outcome]])
    reply: str = ""


async def turn(model: ObedientModel, tools: Registry, context: ToolContext, links: Links) -> Turn:
    """One turn: the tools are those that the caller permitted before anything was read."""
    fence, done = Fence.new(), Turn()
    for _ in range(ROUNDS):
        calls = model.calls([text for shown in done.shown for text in read_back(shown)])
        if not calls:
            break
        for name, arguments in calls:
            outcome = await tools.call(name, arguments, context)
            done.outcomes.append(((name, arguments), outcome))
            done.shown.append(fence.around(outcome.text, name))
    read = [text for shown in done.shown for text in read_back(shown)]
    done.reply = safe_reply(model.reply(read), links)
    return done


def read_back(shown: str) -> list[str]:
    """Every text in a fenced tool result, as a model understands it."""
    first, *inside, last = shown.split("\n")
    assert first.startswith("<data ")
    assert last.startswith("</data ")
    assert all(line.startswith("| ") for line in inside)
    return list(_texts(json.loads("\n".join(line[2:] for line in inside))))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in cast("dict[str, Any]", value).values():
            yield from _texts(child)
    elif isinstance(value, list):
        for child in cast("list[Any]", value):
            yield from _texts(child)
