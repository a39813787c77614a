"""A simulated world in fair weather, for tests of one case: what is on the stage is built in one line."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tests.support.sim_database import Database
from tests.support.sim_oracle import differences
from tests.support.sim_ports import (
    SimCheckpoints,
    SimDeadLetters,
    SimDocuments,
    SimLease,
    SimPins,
    SimRequests,
    SimStore,
    SimStream,
)
from tests.support.sim_recorders import CrashingProbe, SimHealth, SimMeter
from tests.support.sim_source import PIN, SimClient, SimSource, WordCounter
from tests.support.sim_weather import Rates, Weather, dice
from tests.support.virtual import VirtualClock
from worker.embedding.batcher import BatchingEmbedder, Limits
from worker.model import DocKey, Document, DocumentChanged, Leadership
from worker.pipeline.around import Around
from worker.pipeline.diff import Target
from worker.pipeline.duties import Papers
from worker.pipeline.leader import Leader, Terms, World
from worker.pipeline.shape import T

TRICKS: Final = SimSource("tricks")
FAIR: Final = Rates(0, 0, 0, 0, 0, 0, 0, 0, 0)
TIPS: Final = SimSource("tips")
TARGET: Final = Target(PIN, WordCounter(), {"tricks": 1, "tips": 1})


def trick(number: int) -> DocKey:
    """The key of a trick."""
    return DocKey.of("tricks", number)


def document(number: int, name: str, *body: str, links: tuple[int, ...] = (), **fields: object) -> Document:
    """A trick; `fields` may be hidden, ends, title, poison."""
    plain: dict[str, object] = {"hidden": False, "ends": None, "title": name, "views": 0, "poison": None}
    return {"_id": number, "name": name, "body": list(body), "links": list(links), **plain, **fields}


async def in_place(work: Callable[[], T]) -> T:
    """Offload nothing."""
    return work()


@dataclass(slots=True)
class Stage:
    """A database with a worker that may be started on it. Build it inside the running loop."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    weather: Weather = field(default_factory=lambda: Weather(dice("fair"), FAIR))
    meter: SimMeter = field(default_factory=SimMeter)
    health: SimHealth = field(default_factory=SimHealth)
    sources: tuple[SimSource, ...] = (TRICKS,)
    db: Database = field(init=False)
    client: SimClient = field(init=False)
    around: Around = field(init=False)
    papers: Papers = field(init=False)
    world: World = field(init=False)
    embedder: BatchingEmbedder = field(init=False)

    def __post_init__(self) -> None:
        self.db = Database(PIN, {source.collection: {} for source in self.sources}, self.clock.monotonic, epoch=1)
        self.client = SimClient(self.weather)
        self.around = Around(self.clock, self.meter, self.health, CrashingProbe(self.weather), dice("around"))
        self.papers = Papers(
            SimStore(self.db, self.weather),
            SimCheckpoints(self.db, self.weather),
            SimDeadLetters(self.db, self.weather),
            SimLease(self.db, self.weather),
            SimRequests(self.db, self.weather),
            SimPins(self.db, self.weather),
        )
        self.embedder = BatchingEmbedder(self.client, WordCounter(), Limits(), self.around)
        self.world = World(SimStream(self.db, self.weather), self.documents, self.papers, self.embedder)

    @property
    def documents(self) -> SimDocuments:
        """The sources."""
        return SimDocuments(self.db, self.weather)

    def leader(self, epoch: int = 1) -> Leader:
        """A leader that was given that epoch."""
        sources = {source.collection: source for source in self.sources}
        return Leader(self.world, Terms(sources, TARGET, in_place), Leadership(epoch), self.around)

    def put(self, content: Document, *, told: bool = True) -> DocKey:
        """Write a document; the stream tells of it, or not."""
        key = trick(int(str(content["_id"])))
        self.db.documents["tricks"][key] = content
        if told:
            self.db.record(DocumentChanged(key, VirtualClock().now()))
        return key

    def delete(self, number: int, *, told: bool = True) -> None:
        """Delete a document; the stream tells of it, or not."""
        del self.db.documents["tricks"][trick(number)]
        if told:
            self.db.record(DocumentChanged(trick(number), VirtualClock().now()))

    def wrong(self) -> list[str]:
        """What differs from f(documents)."""
        return differences(self.db, {source.collection: source for source in self.sources}, self.now())

    def texts(self, number: int) -> list[str]:
        """What is stored of a document."""
        return [row.draft.text for row in self.db.chunks.get(trick(number), {}).values()]

    def now(self) -> datetime:
        """The wall time."""
        return self.clock.now()
