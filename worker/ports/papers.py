"""What is durable: chunks and ledger, positions, dead letters, the lease and what hangs on it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from brain.knowledge.chunk import Vector
from brain.knowledge.pin import Pin
from worker.generations import Act, Generations
from worker.model import (
    AuditedChunk,
    Checkpoint,
    DeadLetter,
    DocKey,
    DocState,
    Gap,
    Leadership,
    Outcome,
    Publication,
    Request,
    Reservation,
    Scan,
    Stray,
)


class KnowledgeStore(Protocol):
    """What is stored of each document: its ledger row and its chunks in every live generation, changed together."""

    async def states(self, keys: Sequence[DocKey]) -> Mapping[DocKey, DocState]:
        """The stored state of each key, `seen_as` included; a key with nothing stored has an empty state."""
        ...

    async def vectors(self, text_hashes: Sequence[str], pin: Pin | None = None) -> Mapping[str, Vector]:
        """Vectors that are stored for these texts by this pin's model (None: the active one's), in any document.

        Now or a few versions ago, and in any generation of that model and width.
        """
        ...

    async def publish(self, publications: Sequence[Publication], leadership: Leadership) -> Sequence[Outcome]:
        """Store the publications in one transaction; the outcomes are in their order.

        A document whose stored version is newer is left alone (`superseded`); one whose ledger row becomes a tombstone
        is `deleted`; else `applied`. Raises FencedOff when the leadership is over, Conflict or another Retryable when
        the whole transaction may be tried again.

        Debts: with `refresh_neighbours`, with or without a ledger row in the delta, every row that refers to the
        document gets `stale_since`, the delta's version, whatever its own version is (a later debt stays). A row that
        is written keeps a debt that is newer than its own version, and owes its own version itself when it shows a face
        that the ledger's row of that other document does not have (no row: no face) and that its former row did not
        show of it already; written again at the same version, since an answer was lost, it keeps the debt that it has.
        So every stored face agrees in the end, also when names go there and back between two looks, and one that never
        can (a dead letter) costs one look, not a look for ever.
        """
        ...

    async def owing(self, sources: Sequence[str], limit: int) -> Sequence[DocKey]:
        """Documents of these sources with a debt (`stale_since`), oldest first."""
        ...

    async def expired(self, now: datetime, sources: Sequence[str], limit: int) -> Sequence[DocKey]:
        """Documents of these sources whose `expires_at` has passed and that still have chunks."""
        ...

    async def page(self, source: str, after: str | None, limit: int) -> Sequence[DocKey]:
        """Documents of a source that have a living ledger row, in the order of their key's text."""
        ...

    def audit(self, among: Sequence[object] | None = None) -> AsyncIterator[AuditedChunk]:
        """Every chunk row under the active pin, or those of these ids; vectors read and checked."""
        ...

    def strays(self, source: str) -> AsyncIterator[Stray]:
        """The chunk rows of a source that no living ledger row owns."""
        ...

    async def sweep_strays(self, source: str, leadership: Leadership) -> int:
        """Remove the chunk rows of a source that no living ledger row owns; how many there were. Raises FencedOff."""
        ...

    async def discard(self, chunk_ids: Sequence[object], leadership: Leadership, pin: Pin | None = None) -> int:
        """Remove chunk rows of a generation (None: the active one) that no document owns, or that are damaged.

        How many there were. Raises FencedOff.
        """
        ...


class Checkpoints(Protocol):
    """Durable positions, majority and journaled; the reads raise ForeignState for what this version must not touch.

    Each write is one transaction with the fence: refused with FencedOff from the moment another process has the lease.
    """

    async def load(self) -> Checkpoint | None:
        """The stored position."""
        ...

    async def save(self, checkpoint: Checkpoint, leadership: Leadership) -> None:
        """Store the position, in a single document."""
        ...

    async def scans(self) -> Mapping[str, Scan]:
        """The state of each source's scan."""
        ...

    async def save_scan(self, scan: Scan, leadership: Leadership) -> None:
        """Store the state of one source's scan."""
        ...

    async def gap(self) -> Gap | None:
        """The gap in the history that is not reported yet; None also for one that cannot be read: it only reports."""
        ...

    async def save_gap(self, gap: Gap | None, leadership: Leadership) -> None:
        """Store the gap that is to be reported, or that there is none."""
        ...


class DeadLetters(Protocol):
    """Documents that could not be processed; one row a document."""

    async def put(self, letter: DeadLetter, leadership: Leadership) -> None:
        """Store or replace the letter of its document; its debt is forgotten: a retry reads everything anew."""
        ...

    async def all(self) -> Sequence[DeadLetter]:
        """Every letter, oldest first."""
        ...

    async def count(self) -> int:
        """How many there are."""
        ...

    async def drop(self, keys: Sequence[DocKey], leadership: Leadership) -> int:
        """Forget these letters; how many there were."""
        ...


class Lease(Protocol):
    """Who may write. One row; the database decides."""

    async def acquire(self) -> Leadership | None:
        """Take the lease if it is free, expired, or held by a process of this host that is gone; else None."""
        ...

    async def renew(self, leadership: Leadership) -> None:
        """Say that this process lives; raises FencedOff when another one leads, LeaseGone when nobody does."""
        ...

    async def release(self, leadership: Leadership) -> None:
        """Give the lease back, so that another may take it at once."""
        ...


class Requests(Protocol):
    """Work that a command leaves for the leader and waits for."""

    async def submit(self, kind: str, arguments: Mapping[str, object]) -> str:
        """Leave a request; its id."""
        ...

    async def take(self, leadership: Leadership, *, pins: bool = False) -> Request | None:
        """The oldest request that is not finished; it is begun now.

        With `pins` one of those of the kind `pin`, else of all others: a rollback must not wait behind a backfill, nor
        behind a look that an outage holds up.

        A leader does one of each at a time, so it gets the same one again until it is finished: an answer may be lost.
        """
        ...

    async def finish(self, request: Request, result: Mapping[str, object], leadership: Leadership) -> None:
        """Store the result."""
        ...

    async def result(self, request_id: str) -> Mapping[str, object] | None:
        """The result, or None while it is not there."""
        ...


class SpendBook(Protocol):
    """What embedding has cost on each UTC day. Each write carries the epoch and is refused with FencedOff if it is old.

    Writes may be repeated when an answer was lost: a reservation is counted once and settled once.
    """

    async def counted(self, day: str) -> float:
        """US dollars counted of a day: settled, and reserved by calls that are on their way or were killed."""
        ...

    async def reserve(self, reservation: Reservation, limit: float, leadership: Leadership) -> bool:
        """Count a reservation, unless the day would then have more than `limit` dollars; whether it is counted.

        Raises Conflict, or another Retryable, when that is not known: the same may be tried again.
        """
        ...

    async def settle(self, reservation: Reservation, usd: float, leadership: Leadership) -> None:
        """The reservation was really so many dollars. One that is not open is left as it is."""
        ...


class Pins(Protocol):
    """The generations of chunks: one row, changed under the lease, each change one write."""

    async def load(self) -> Generations:
        """Those that live now; raises NothingPinned where none does, ConfigurationFault for a row that is no pin."""
        ...

    async def change(self, act: Act, pin: Pin, leadership: Leadership, turn: int | None = None) -> Generations:
        """Do it, and return what lives then; the same again when it was done before.

        Raises PinRefused when it may not be done as things stand, or was asked for at another turn, and FencedOff.
        """
        ...

    async def clear(self, leadership: Leadership) -> Sequence[str]:
        """Remove the collections that are `leaving`; which. Only when nobody writes into them any more."""
        ...
