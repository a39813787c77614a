"""What goes wrong, by command and by occurrence.

A command has its wire name; an aggregate that opens a change stream is called `watch`, and `probe` when it asks for one
event at most, to see whether it opens.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

RESUMABLE: Final = frozenset({6, 7, 43, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435})
"""Codes of a getMore that a server labels as resumable (the drivers' change stream specification)."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The command is not done; its answer is an error."""

    code: int
    labels: tuple[str, ...] = ()

    def reply(self, command: str) -> dict[str, Any]:
        """The answer, labelled as a server would."""
        labels = list(self.labels)
        if command == "getMore" and self.code in RESUMABLE:
            labels.append("ResumableChangeStreamError")
        row = {"ok": 0.0, "code": self.code, "codeName": f"Code{self.code}", "errmsg": f"scripted {self.code}"}
        return row | ({"errorLabels": labels} if labels else {})


@dataclass(frozen=True, slots=True)
class LateFail:
    """The command is done, and its answer says that its durability is not known (a write concern error)."""

    code: int
    labels: tuple[str, ...] = ()

    def added(self) -> dict[str, Any]:
        """What the answer holds besides."""
        error = {"code": self.code, "codeName": f"Code{self.code}", "errmsg": "scripted", "errInfo": {"wtimeout": True}}
        return {"writeConcernError": error} | ({"errorLabels": list(self.labels)} if self.labels else {})


@dataclass(frozen=True, slots=True)
class ItemsFail:
    """A write is not done; its answer blames items of it: index to code."""

    codes: Mapping[int, int]

    def reply(self) -> dict[str, Any]:
        """The answer."""
        errors = [{"index": index, "code": code, "errmsg": "scripted"} for index, code in self.codes.items()]
        return {"ok": 1.0, "n": 0, "nModified": 0, "writeErrors": errors}


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection is reset instead of an answer: before the command is done, or after it."""

    after: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """There is no answer, and the connection stays open. The command is not done."""


Fault = Fail | LateFail | ItemsFail | Cut | Silence


@dataclass(slots=True)
class Script:
    """The faults to come."""

    _next: dict[str, deque[Fault | None]] = field(default_factory=lambda: defaultdict(deque))
    _always: dict[str, Fault] = field(default_factory=dict[str, Fault])

    def on(self, command: str, *faults: Fault | None) -> None:
        """The next occurrences of a command, in their order; None goes well."""
        self._next[command].extend(faults)

    def always(self, command: str, fault: Fault) -> None:
        """Every occurrence that has no fault of its own, until `calm`."""
        self._always[command] = fault

    def calm(self) -> None:
        """No more faults."""
        self._next.clear()
        self._always.clear()

    def take(self, command: str) -> Fault | None:
        """The fault of this occurrence."""
        waiting = self._next[command]
        return waiting.popleft() if waiting else self._always.get(command)
