"""`index ensure|status`: the search index of every living generation, as it should be and as it is."""

from collections.abc import Mapping, Sequence
from typing import Final, Self

from rich.console import Console, Group
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.text import Text

from brain.knowledge.pin import Pin
from worker.app import opened
from worker.commands.where import Where, table
from worker.errors import EXIT_DIFFERENCES, EXIT_OK
from worker.mongo.vector_index import MongoVectorIndex
from worker.parts import App
from worker.vector_index import CEILING_SECONDS, IndexState, Vectors, ensure

_EXACT: Final = (
    "This server has no vector search (Atlas Search): the exact engine of the brain serves, and no index is needed."
)


async def ensure_index(where: Where, *, update: bool) -> int:
    """Create what is missing and wait until it can be searched; 1 when chunks are left out of it."""
    async with opened(embedded=where.embedded, data=where.data) as app:
        index = MongoVectorIndex(app.database)
        with _Waiting(shown=where.people) as waiting:
            states = [await ensure(index, pin, app.clock, update=update, progress=waiting.told) for pin in _pins(app)]
    return _answer(where, states)


async def index_status(where: Where) -> int:
    """Say how each index stands; 1 when one is not ready or leaves chunks out."""
    async with opened(embedded=where.embedded, data=where.data, create=False, writes=False) as app:
        index = MongoVectorIndex(app.database)
        states = [await index.status(pin) for pin in _pins(app)]
    return _answer(where, states)


def _pins(app: App) -> Sequence[Pin]:
    return app.generations.live


def _answer(where: Where, states: Sequence[IndexState]) -> int:
    supported = any(state.supported for state in states)
    sound = all(state.ready and not _vectors(state).unfit for state in states)
    report = {"ok": sound, "engine": "atlas" if supported else "exact", "indexes": [_row(state) for state in states]}
    where.answer(report, _shown(states, supported=supported))
    return EXIT_OK if sound else EXIT_DIFFERENCES


def _vectors(state: IndexState) -> Vectors:
    return state.vectors or Vectors()


def _row(state: IndexState) -> Mapping[str, object]:
    vectors = _vectors(state)
    return {
        **state.pin.as_row(),
        "ready": state.ready,
        "words": state.words,
        "exists": state.exists,
        "status": state.status or None,
        "queryable": state.queryable,
        "differences": list(state.differences),
        "indexed": state.indexed,
        "chunks": vectors.chunks,
        "withoutValidVector": {
            "missing": vectors.missing,
            "wrongType": vectors.wrong_type,
            "wrongWidth": vectors.wrong_width,
            "zero": vectors.zero,
        },
    }


def _shown(states: Sequence[IndexState], *, supported: bool) -> Group:
    rows = [
        [state.pin.index, state.pin.collection, state.words, _vectors(state).chunks, state.indexed, _left_out(state)]
        for state in states
    ]
    notes = [] if supported else [Text(_EXACT)]
    if any(_vectors(state).unfit for state in states):
        notes.append(Text("Chunks without a valid vector are never found: `verify --repair` mends them."))
    return Group(
        table("vector indexes", ["index", "collection", "state", "chunks", "indexed", "left out"], rows), *notes
    )


def _left_out(state: IndexState) -> str:
    vectors = _vectors(state)
    kinds = {
        "without a vector": vectors.missing,
        "of a wrong type": vectors.wrong_type,
        "of a wrong width": vectors.wrong_width,
        "all zero": vectors.zero,
    }
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count) or "none"


class _Waiting:
    """Tells a person what is waited for; nothing elsewhere."""

    def __init__(self, *, shown: bool) -> None:
        columns = SpinnerColumn(), TextColumn("{task.description}")
        self._progress = Progress(*columns, console=Console(stderr=True), disable=not shown)
        self._task = self._progress.add_task("looking at the index")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._progress.stop()

    def told(self, state: IndexState, seconds: float) -> None:
        stands = f"{state.pin.index}: {state.status or 'not listed yet'}"
        self._progress.update(self._task, description=f"{stands}, {seconds:.0f} of {CEILING_SECONDS:.0f} s")
