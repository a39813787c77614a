"""What a leadership holds: its lease, its place in the stream and in scans, requests to it, money it has reserved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bson import Timestamp

from worker.model.changes import Outcome, Position
from worker.model.keys import DocKey


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The stored position of the stream: every change before it, of these sources, has a durable outcome or a scan due.

    It says nothing of a source that is not among them: its changes passed unseen.
    """

    position: Position
    saved_at: datetime
    sources: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scan:
    """The state of the scan of one source.

    `shape` fingerprints what shaped it (chunker version, model, limits): another fingerprint means a new scan is due.
    `after` is the id up to which every document has a durable outcome; `done` says that orphans were looked for too.
    """

    source: str
    reason: str
    shape: str
    done: bool
    after: DocKey | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """What was missed when the history was lost, from the last step that was taken in to the present of then.

    `noticed_at` is by the database's clock: a scan of one of the sources that ended later has found what was missed
    there. `outcomes` is what became of the documents that were looked at so far.
    """

    since: Timestamp
    until: Timestamp
    sources: tuple[str, ...]
    noticed_at: datetime
    outcomes: Mapping[Outcome, int] = field(default_factory=dict[Outcome, int])


@dataclass(frozen=True, slots=True)
class Leadership:
    """A held lease: every write carries its epoch, and the database refuses those of an older one."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Request:
    """A piece of work that a command left for the leader.

    `backfill` {sources}: scan them; `look` {keys: [{source, id}], discard: [chunk ids]}: remove these chunk rows, then
    look at these documents again; `forget` {keys}: drop their dead letters; `pin` {act, pin, turn}: change the
    generations. `again`: a former leader has begun it.
    """

    id: str
    kind: str
    arguments: Mapping[str, object]
    again: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a call to the embedder may cost, counted beforehand: its UTC day (ISO date), its id and US dollars."""

    day: str
    id: str
    usd: float
