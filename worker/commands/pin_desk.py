"""What the `pin` commands work with: the row of the generations, and what can be seen of each without any model."""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from brain.knowledge.pin import Pin
from brain.knowledge.settings import load
from worker.app import connect, quiet_surroundings
from worker.clock import Clock
from worker.commands.leading import take_turn
from worker.commands.where import Where
from worker.config import PREFIX, WorkerSettings
from worker.embedding.admission import Admission
from worker.embedding.embedders import Embedders
from worker.errors import PinRefused
from worker.generations import Act, Generations, changed, order
from worker.mongo.checkpoints import MongoCheckpoints
from worker.mongo.dead_letters import MongoDeadLetters
from worker.mongo.driver import Database
from worker.mongo.knowledge import MongoKnowledge
from worker.mongo.lease import MongoLease
from worker.mongo.pins import MongoPins
from worker.mongo.requests import MongoRequests
from worker.mongo.topology import check_server
from worker.mongo.vector_index import MongoVectorIndex
from worker.parts import target_of
from worker.pipeline.scan_book import complete
from worker.pipeline.scan_shape import covers, fingerprint
from worker.sources.registry import SOURCES
from worker.vector_index import IndexState


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a source is in one generation: documents looked at, of about how many."""

    seen: int
    documents: int
    done: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How one generation stands."""

    pin: Pin
    chunks: int
    progress: Mapping[str, Progress]
    index: IndexState

    @property
    def built(self) -> bool:
        """Whether every source was scanned to its end since the generation lives."""
        return all(source.done for source in self.progress.values())


@dataclass(frozen=True, slots=True)
class PinDesk:
    """The generations of one database, and whoever leads there."""

    settings: WorkerSettings
    database: Database
    pins: MongoPins
    index: MongoVectorIndex
    lease: MongoLease
    requests: MongoRequests
    clock: Clock
    embedders: Embedders

    async def do(self, act: Act, pin: Pin) -> Generations:
        """Change the generations under the lease, or have the leader do it; what lives then. Raises PinRefused."""
        now = await self.pins.load()
        changed(now, act, pin)
        leadership, answer = await take_turn(self.lease, self.requests, "pin", order(act, pin, now.turn))
        if leadership is not None:
            try:
                await self.pins.change(act, pin, leadership, now.turn)
                await self.pins.clear(leadership)  # nobody else writes now
            finally:
                await self.lease.release(leadership)
        elif "failed" in answer:
            raise PinRefused(str(answer["failed"]))
        return await self.pins.load()

    async def standing(self, pin: Pin) -> Standing:
        """How a generation stands now."""
        scans = await MongoCheckpoints(self.database).scans()
        target = target_of(self.settings, pin)
        progress: dict[str, Progress] = {}
        for source in self.settings.sources:
            scan, shape = scans.get(source), fingerprint(SOURCES[source].chunker_version, target)
            documents = await self.database.estimate(source)
            seen = scan.seen if scan is not None and covers(scan, shape) else 0
            progress[source] = Progress(seen, documents, scan is not None and complete(scan, shape))
        chunks = await self.database.count(pin.collection, {})
        return Standing(pin, chunks, progress, await self.index.look(pin))

    async def lacking(self, generations: Generations) -> Sequence[str]:
        """Keys of dead-lettered documents that are found now and would not be found after a switch."""
        if generations.beside is None:
            return []
        keys = [str(letter.key) for letter in await MongoDeadLetters(self.database).all()]
        now = await MongoKnowledge(self.database, generations.active, self.clock).chunks(keys)
        then = await MongoKnowledge(self.database, generations.beside, self.clock).chunks(keys)
        return sorted(now.keys() - then.keys())

    async def unwatched(self, generations: Generations) -> Sequence[str]:
        """Sources that are searched now and that WORKER_SOURCES does not name: no other generation is built of them."""
        others = {"$match": {"source": {"$nin": list(self.settings.sources)}}}
        rows = await self.database.aggregate(generations.active.collection, [others, {"$group": {"_id": "$source"}}])
        return sorted(str(row["_id"]) for row in rows)

    async def still(self, pin: Pin) -> None:
        """Raise PinRefused when the generation does not live any more: whoever goes on would make it anew."""
        if pin not in (await self.pins.load()).live:
            message = f"{pin.collection} was dropped meanwhile"
            raise PinRefused(message)


@asynccontextmanager
async def pin_desk(where: Where) -> AsyncGenerator[PinDesk]:
    """Ask the database what it is; no model is loaded and none is asked for."""
    settings = load(WorkerSettings, os.environ, PREFIX, embedded=where.embedded)
    async with connect(settings, embedded=where.embedded, data=where.data, create=False) as connection:
        database, around = connection.database, quiet_surroundings(settings)
        await check_server(database)
        embedders = Embedders(settings, around)
        try:
            yield PinDesk(
                settings=settings,
                database=database,
                pins=MongoPins(database, Admission(settings, embedders)),
                index=MongoVectorIndex(database),
                lease=MongoLease(database, around.clock),
                requests=MongoRequests(database, around.clock),
                clock=around.clock,
                embedders=embedders,
            )
        finally:
            await embedders.close()


def reasons_against(standing: Standing, lacking: Sequence[str], unwatched: Sequence[str] = ()) -> list[str]:
    """Why a generation may not be switched to, as far as can be seen without comparing everything."""
    open_ = [name for name, source in standing.progress.items() if not source.done]
    reasons = [f"it is not built yet: {', '.join(open_)} (`pin build` shows how far it is)"] if open_ else []
    indexed = standing.index.indexed
    if not standing.index.ready:
        reasons.append(f"its index {standing.pin.index} is {standing.index.words}")
    elif indexed is not None and indexed < standing.chunks:  # searchable is not yet caught up (mongot indexes later)
        reasons.append(f"its index holds {indexed:,} of {standing.chunks:,} chunks so far: wait a moment")
    if lacking:
        shown = ", ".join(lacking[:3]) + (" …" if len(lacking) > 3 else "")  # noqa: PLR2004 - a few, as examples
        reasons.append(
            f"{len(lacking)} dead-lettered documents would not be found any more ({shown}): `dead-letters retry`, or "
            "--accept-dead-letters"
        )
    if unwatched:
        names = ", ".join(unwatched)
        reasons.append(
            f"what is stored of {names} would not be found any more, since WORKER_SOURCES does not name it: add it "
            "there and `pin build`, or --accept-unwatched"
        )
    return reasons
