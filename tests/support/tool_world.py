"""A database with the sample data in it, and tools called as the loop calls them: by name, with JSON text."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from bson import json_util
from bson.objectid import ObjectId
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.knowledge.pin import MINILM, Pin
from brain.knowledge.search.service import Found
from brain.registry import Registry
from brain.tool import AnyTool, Card, ToolContext
from brain.tools import ALL_TOOLS

SAMPLE: Final = Path(__file__).parents[2] / "deploy" / "sample"
NOW: Final = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
"""The sample's "today"."""
ORIGIN: Final = "https://trickbook.example.com"
MIKA, JUNO, TANE, LOTTE, PRIYA, SAM = (f"{10}{number:022d}" for number in range(1, 7))
"""The sample's riders; its README says what is odd about each."""
BOT: Final = f"{10}{7:022d}"


def sample_id(prefix: str, number: int) -> str:
    """The hex id of a sample row: `sample_id("30", 3)` is spot 3."""
    return f"{prefix}{number:022d}"


def sample_rows() -> dict[str, list[Row]]:
    """Every collection of the sample, as a driver returns it."""
    options = json_util.JSONOptions(tz_aware=True)
    rows: dict[str, list[Row]] = {}
    for path in [*sorted(SAMPLE.glob("*.json")), *sorted(SAMPLE.glob("*/*.json"))]:
        if path.parent.name != "docs":
            name = path.stem if path.parent == SAMPLE else path.parent.name
            rows.setdefault(name, []).extend(json_util.loads(path.read_text(encoding="utf-8"), json_options=options))
    return rows


async def fill(database: AsyncDatabase[Row], rows: Mapping[str, Sequence[Row]] | None = None) -> None:
    """Store the sample (or the given rows)."""
    for name, documents in (rows or sample_rows()).items():
        await database[name].insert_many(list(documents))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model is told, read again from the text that it gets."""

    text: str
    data: dict[str, Any]
    error: dict[str, Any]
    cards: Sequence[Card]
    links: Sequence[str] = ()

    @property
    def ids(self) -> list[str]:
        """The ids of the results, in their order."""
        return [str(hit["id"]) for hit in self.data["results"]]

    @property
    def code(self) -> str | None:
        """The code of the failure, or None."""
        return cast("str | None", self.error.get("code"))


class NoKnowledge:
    """Search in the chunks, by tools that have no business there."""

    async def search(self, query: str, sport: str | None = None, doc_type: str | None = None, limit: int = 5) -> Found:
        """Fails the test."""
        message = f"searched the chunks for {query!r}"
        raise AssertionError(message)


class SilentKnowledge:
    """Search in the chunks that finds nothing."""

    async def search(self, query: str, sport: str | None = None, doc_type: str | None = None, limit: int = 5) -> Found:
        """No hits."""
        return Found((), Pin(MINILM.name, MINILM.dimensions), "exact")


@dataclass(slots=True)
class ToolWorld:
    """Tools over one database; every call is a turn of its own unless `turn` names one."""

    database: AsyncDatabase[Row]
    tools: Sequence[AnyTool] = ALL_TOOLS
    knowledge: Any = field(default_factory=NoKnowledge)
    now: datetime = NOW
    turn: str | None = None
    turns: int = 0

    async def call(self, name: str, user: str | None = None, /, **arguments: object) -> Answer:
        """Call a tool for a rider (or nobody)."""
        self.turns += 1
        context = ToolContext(
            database=self.database,
            knowledge=self.knowledge,
            now=lambda: self.now,
            user_id=user,
            companion_id=BOT,
            turn_id=self.turn or f"turn-{self.turns}",
            origin=ORIGIN,
        )
        outcome = await Registry(self.tools).call(name, json.dumps(arguments), context)
        told = json.loads(outcome.text)
        assert told["ok"] is outcome.ok
        return Answer(outcome.text, told.get("data", {}), told.get("error", {}), outcome.cards, outcome.links)

    async def row(self, collection: str, hex_id: str) -> Row:
        """A row as it is stored."""
        found = await self.database[collection].find_one({"_id": ObjectId(hex_id)})
        assert found is not None
        return found
