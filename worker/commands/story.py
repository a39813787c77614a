"""The story that `demo` tells: four changes of the sample data, and what search must answer afterwards."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from brain.knowledge.search import Hit
from worker.commands.where import table
from worker.mongo.sample_writer import SampleWriter

Hits = Sequence[Hit]

_SHOWN: Final = 90  # characters of a hit's text


@dataclass(frozen=True, slots=True)
class Scene:
    """One change: what is asked before and after, and what the answer must then show."""

    title: str
    query: str
    change: Callable[[SampleWriter], Awaitable[None]]
    seen: Callable[[Hits], bool]


@dataclass(frozen=True, slots=True)
class Played:
    """What a scene showed; `seconds` is None when the change was never seen."""

    scene: Scene
    before: Hits
    after: Hits
    seconds: float | None


def says(words: str) -> Callable[[Hits], bool]:
    """The best hit's text holds these words."""
    return lambda hits: bool(hits) and words in str(hits[0].fields.get("text"))


def silent(title: str) -> Callable[[Hits], bool]:
    """No hit has this title."""
    return lambda hits: all(hit.fields.get("title") != title for hit in hits)


async def _edit(writer: SampleWriter) -> None:
    text = "Slide the front foot off the heel-side edge as if you were wiping marmalade off a diving board."
    await writer.update("trickipedia", {"name": "Kickflip", "category": "Skateboarding"}, {"description": text})


async def _hide(writer: SampleWriter) -> None:
    await writer.update("spots", {"name": "Old Quarry DIY"}, {"approvalStatus": "private"})


async def _delete(writer: SampleWriter) -> None:
    await writer.delete("trickipedia", {"name": "Caveman", "category": "Skateboarding"})


async def _rename(writer: SampleWriter) -> None:
    change = {"name": "Pancake Shuvit", "url": "pancake-shuvit"}
    await writer.update("trickipedia", {"name": "Pop Shove-it", "category": "Skateboarding"}, change)


async def _nothing(_writer: SampleWriter) -> None:
    """The change was made in the scene before."""


SCENES: Final = (
    Scene("An editor rewrites the kickflip", "wipe marmalade off a diving board", _edit, says("marmalade")),
    Scene("A rider makes a spot private", "Old Quarry DIY spot in Pittsburgh", _hide, silent("Old Quarry DIY")),
    Scene("An editor deletes a trick", "Caveman: jump on the board from standing", _delete, silent("Caveman")),
    Scene("An editor renames the pop shove-it", "Pancake Shuvit", _rename, says("Pancake Shuvit")),
    Scene(
        "… and a trick that builds on it says the new name",
        "Impossible: wrap the skateboard around the back foot",
        _nothing,
        lambda hits: any(
            h.fields.get("title") == "Impossible" and "Pancake Shuvit" in str(h.fields["text"]) for h in hits
        ),
    ),
)


def show(console: Console, played: Sequence[Played]) -> None:
    """Print what search answered before and after each change."""
    for one in played:
        rows = [[when, _hit(hits, 0), _hit(hits, 1)] for when, hits in (("before", one.before), ("after", one.after))]
        took = "never" if one.seconds is None else f"{one.seconds:.2f} s"
        console.print(table(f"\n{one.scene.title} ({took})\nsearch: {one.scene.query}", ["", "first", "second"], rows))


def _hit(hits: Hits, index: int) -> str:
    if len(hits) <= index:
        return "-"
    fields = hits[index].fields
    text = " ".join(str(fields.get("text")).split())
    return f"{fields.get('title')} ({hits[index].score:.3f})\n{text[:_SHOWN]}…"
