"""How far the rider is: what they have landed, by list and in all. Told from the tricks, never from stored counters."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from brain.knowledge.domain.statuses import Progress
from brain.tool import AnyTool, Arguments, Result, Tool, ToolContext
from brain.trickbook.lists import ListedTrick, landed, list_name, own_lists, tricks_on

MOST_LISTS: Final = 20
MOST_TRICKS: Final = 20
_EVER: Final = datetime.min.replace(tzinfo=UTC)


class MyProgress(Arguments):
    """Nothing: it is about the rider who asks."""


class ListProgress(Result):
    """One list; `progress` is the share of landed tricks, 0 to 100."""

    id: str
    name: str
    total_tricks: int
    landed: int
    learning: int
    progress: int


class TrickProgress(Result):
    """One trick; `since` is when its row was last written."""

    id: str
    name: str
    list_name: str
    since: datetime | None = None


class Progressed(Result):
    """`landed_tricks` and `learning_tricks` hold the latest."""

    total_lists: int
    total_tricks: int
    landed: int
    learning: int
    not_started: int
    lists: list[ListProgress]
    landed_tricks: list[TrickProgress]
    learning_tricks: list[TrickProgress]
    message: str | None = None


async def my_progress(context: ToolContext, _arguments: MyProgress) -> Progressed:
    """The rider's figures over all their lists."""
    rows = await own_lists(context)
    on = await tricks_on(context, rows)
    lists = [(str(row["_id"]), list_name(row), on[row["_id"]]) for row in rows]
    done, learning = _tricks(lists, "landed"), _tricks(lists, "learning")
    total = sum(len(tricks) for *_, tricks in lists)
    return Progressed(
        total_lists=len(lists),
        total_tricks=total,
        landed=len(done),
        learning=len(learning),
        not_started=total - len(done) - len(learning),
        lists=[_told(*one) for one in reversed(lists)][:MOST_LISTS],
        landed_tricks=done[:MOST_TRICKS],
        learning_tricks=learning[:MOST_TRICKS],
        message=None if lists else "the rider has no trick lists yet; create_tricklist makes one",
    )


def _told(id_: str, name: str, tricks: Sequence[ListedTrick]) -> ListProgress:
    return ListProgress(
        id=id_,
        name=name,
        total_tricks=len(tricks),
        landed=landed(tricks),
        learning=sum(trick.progress == "learning" for trick in tricks),
        progress=round(100 * landed(tricks) / len(tricks)) if tricks else 0,
    )


def _tricks(lists: Sequence[tuple[str, str, Sequence[ListedTrick]]], progress: Progress) -> list[TrickProgress]:
    """The tricks that are so far, the latest first."""
    found = [
        TrickProgress(id=str(trick.id), name=trick.name, list_name=name, since=trick.changed)
        for _, name, tricks in lists
        for trick in tricks
        if trick.progress == progress
    ]
    return sorted(found, key=lambda trick: (trick.since or _EVER, trick.id), reverse=True)


TOOLS: Final[tuple[AnyTool, ...]] = (
    Tool(
        name="my_progress",
        description="The rider's own figures: tricks landed, being learned and to do, by list and in all.",
        arguments=MyProgress,
        result=Progressed,
        handler=my_progress,
        scope="user",
    ),
)
