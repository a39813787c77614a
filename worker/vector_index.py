"""The search index of a generation on a server with vector search: how it stands, and bringing it there.

    missing ──▶ create ─┐
    defined otherwise ──▶ update, where that was asked for ─┤
                                                            └─▶ look every 5 s until it can be searched, 120 s at most

Creating answers long before the index can be searched. The rhythm and the ceiling are those of the drivers' own tests
and of others who wait (mongodb/specifications#1442, laravel-mongodb#3542); what ends the wait at once is in `_verdict`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from brain.knowledge.pin import Pin
from brain.knowledge.search.index import BROKEN, UNDER_WAY
from worker.clock import Clock
from worker.errors import IndexMissing, IndexNotReady, IndexUnusable

POLL_SECONDS: Final = 5.0
CEILING_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Vectors:
    """The chunks of a generation by what can become of their vectors; all but `fit` are left out of an index silently.

    `missing` have none, `wrong_type` something else, `wrong_width` another model's, `zero` point nowhere.
    """

    fit: int = 0
    missing: int = 0
    wrong_type: int = 0
    wrong_width: int = 0
    zero: int = 0

    @property
    def chunks(self) -> int:
        """All of them."""
        return self.fit + self.unfit

    @property
    def unfit(self) -> int:
        """Those that no search can find."""
        return self.missing + self.wrong_type + self.wrong_width + self.zero


@dataclass(frozen=True, slots=True)
class IndexState:
    """How the index of a generation stands. `supported` is whether the server has vector search at all.

    `differences` name what of the definition is not as the pin needs it; `indexed` is how many documents the index
    holds, where the server tells; `vectors` were not counted when None.
    """

    pin: Pin
    supported: bool
    exists: bool = False
    status: str = ""
    queryable: bool = False
    differences: tuple[str, ...] = field(default=())
    indexed: int | None = None
    vectors: Vectors | None = None

    @property
    def ready(self) -> bool:
        """Whether searches are answered rightly now: by the index, or by the exact engine where none is needed."""
        if not self.supported:
            return True
        return self.queryable and not self.differences and self.status not in BROKEN | UNDER_WAY

    @property
    def words(self) -> str:
        """How it stands, in words for people."""
        if not self.supported:
            return "not needed: this server has no vector search, the exact engine serves"
        if not self.exists:
            return "missing: `index ensure` creates it"
        if self.differences:
            return f"defined otherwise ({'; '.join(self.differences)}): `index ensure --update` defines it anew"
        if self.status in BROKEN:
            return f"{self.status}: drop it in Atlas, then `index ensure`"
        return "ready" if self.ready else f"{self.status}: not ready yet"


class VectorIndex(Protocol):
    """The indexes, at the server."""

    async def look(self, pin: Pin) -> IndexState:
        """How this generation's index stands, without counting vectors."""
        ...

    async def status(self, pin: Pin) -> IndexState:
        """The same with the vectors counted: the server reads every chunk for it."""
        ...

    async def create(self, pin: Pin) -> None:
        """Begin to build the index."""
        ...

    async def update(self, pin: Pin) -> None:
        """Begin to build it by the right definition; the old one answers until that is done."""
        ...


Progress = Callable[[IndexState, float], None]
"""Told after each look: the state, and how many seconds have been waited."""


def _silent(_state: IndexState, _seconds: float) -> None:
    return


async def ensure(
    index: VectorIndex, pin: Pin, clock: Clock, *, update: bool = False, progress: Progress = _silent
) -> IndexState:
    """Create the index where there is none, and wait until it can be searched; its state, with the vectors counted.

    Raises IndexUnusable when it is defined otherwise and `update` was not said, when its definition changes while we
    wait, or when its status says that waiting is in vain; IndexMissing when it vanishes; IndexNotReady after
    CEILING_SECONDS.
    """
    state = await index.look(pin)
    if not state.supported:
        return await index.status(pin)
    if state.exists and state.differences and not update:
        message = f"the vector index {pin.index} of {pin.collection} is {state.words}"
        raise IndexUnusable(message)
    if not state.exists:
        await index.create(pin)
    elif state.differences:
        await index.update(pin)
    began, seen = clock.monotonic(), state.exists
    while True:
        state = await index.look(pin)
        waited = clock.monotonic() - began
        progress(state, waited)
        if _verdict(state, seen=seen):
            return await index.status(pin)
        if waited >= CEILING_SECONDS:
            message = (
                f"the vector index {pin.index} of {pin.collection} cannot be searched after {waited:.0f} s"
                f" ({state.status or 'not listed yet'}): it goes on by itself, look again with `index status`"
            )
            raise IndexNotReady(message)
        seen = seen or state.exists
        await clock.sleep(POLL_SECONDS)


def _verdict(state: IndexState, *, seen: bool) -> bool:
    """Whether it is done; raises when it never will be. Just after its creation it may not be listed yet."""
    which = f"the vector index {state.pin.index} of {state.pin.collection}"
    if not state.exists:
        if seen:
            message = f"{which} has vanished while it was built: somebody dropped it, or the collection"
            raise IndexMissing(message)
        return False
    if state.differences:
        message = f"{which} was defined otherwise meanwhile ({'; '.join(state.differences)}): somebody else changes it"
        raise IndexUnusable(message)
    if state.status in BROKEN:
        message = (
            f"{which} has the status {state.status}: Atlas shows the reason (storage full? too many search indexes for"
            " the tier?); drop it there, then `index ensure`"
        )
        raise IndexUnusable(message)
    return state.ready
