"""The leader: what one process does while it holds the lease.

The tail of the stream, the scanner and the duties by the clock bring changes to the desk; the coalescer hands documents
to the pumps of the runner; each outcome moves the watermark, and the watermark is what the checkpoint stores.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final

from brain.knowledge.pin import Pin
from worker.errors import GenerationsChanged, NothingPinned
from worker.model import Checkpoint, DocKey, Leadership, Origin, Position, Publication, Scan
from worker.pipeline.around import Around
from worker.pipeline.coalesce import Coalescer
from worker.pipeline.dead_letters import Undertaker
from worker.pipeline.desk import Desk
from worker.pipeline.diff import Target
from worker.pipeline.duties import Duties, Papers
from worker.pipeline.embed import EmbedStep
from worker.pipeline.gap import GapReport
from worker.pipeline.intake import Tail
from worker.pipeline.publish import Publisher
from worker.pipeline.runner import Runner, Steps
from worker.pipeline.scan import Scanner
from worker.pipeline.scan_book import ScanBook
from worker.pipeline.scan_loop import ScanLoop
from worker.pipeline.scan_shape import shape_of
from worker.pipeline.shape import Offload, Shaper
from worker.pipeline.timekeeper import Timekeeper
from worker.pipeline.together import Together, end, first_of, unless, within
from worker.pipeline.watch import watch
from worker.ports import ChangeStream, Documents, TextEmbedder
from worker.sources.source import Source

PUMPS: Final = 2
"""Batches of anything on their way at once: one reads or is stored while the other embeds; a third pump is for what the
stream tells alone."""

LAST_WORDS: Final = 1.0
"""Seconds that the last position may take, when the drain has used up all the time there was."""

CAPACITY: Final = 5000
"""Changes without outcome that the worker holds; beyond, the stream is not read further."""


@dataclass(frozen=True, slots=True)
class World:
    """The outside of the pipeline, every port of it."""

    stream: ChangeStream
    documents: Documents
    papers: Papers
    embedder: TextEmbedder
    beside: Mapping[Pin, TextEmbedder] = field(default_factory=dict[Pin, TextEmbedder])
    """The embedder of each generation beside the active one."""
    published: Callable[[Publication], None] = lambda _publication: None
    """Told of each publication when it is stored."""


@dataclass(frozen=True, slots=True)
class Farewell:
    """How a leadership ended: `left` changes have no outcome yet, and the last position is `stored`, or is not."""

    left: int = 0
    stored: bool = True


@dataclass(frozen=True, slots=True)
class Terms:
    """What the worker is to do: for which sources, for which generations, with which times (seconds)."""

    sources: Mapping[str, Source]
    target: Target
    offload: Offload
    window: float = 0.3
    drain: float = 10.0
    rescan_every: timedelta = timedelta(hours=168)
    beside: tuple[Target, ...] = ()

    @property
    def targets(self) -> tuple[Target, ...]:
        """One a live generation, the active one's first."""
        return (self.target, *self.beside)


class Leader:
    """One leadership, from begin to drain."""

    def __init__(
        self,
        world: World,
        terms: Terms,
        leadership: Leadership,
        around: Around,
        watch: Callable[[Scan], None] = lambda _scan: None,
    ) -> None:
        self._world = world
        self._terms = terms
        self._leadership = leadership
        self._time = Timekeeper(world.stream, around)
        self._around = around = replace(around, clock=self._time.clock)
        self._told = watch
        self._coalescer = Coalescer(around.clock, terms.window, CAPACITY)
        self._gap = GapReport(world.papers.checkpoints, leadership, around)
        shapes = {name: shape_of(source.chunker_version, terms.targets) for name, source in terms.sources.items()}
        self._book = ScanBook(world.papers.checkpoints, shapes, leadership)
        self._followed = frozenset(shapes)

    async def serve(self, stop: asyncio.Event) -> Farewell:
        """Lead until `stop`, then drain and store the last checkpoint, as far as the time for it allows.

        Raises an ExceptionGroup of whatever ended a task: FencedOff, Fatal, or a bug; GenerationsChanged, drained
        likewise, when other generations live now than this leader was made for.
        """
        try:
            return await self._serve(stop)
        finally:
            if not stop.is_set():
                self._leave_to_the_next()

    async def _serve(self, stop: asyncio.Event) -> Farewell:
        position = await unless(stop, self._begin(following=True))
        if position is None:
            return Farewell()
        # Not before the scans to do are known: else it would look ready for a moment.
        self._around.health.role("leader")
        desk, duties = self._desk(position)
        scans = self._scans(desk)
        tail = Tail(self._world.stream, list(self._terms.sources), desk, self._around, self._gap.began)
        async with Together() as group:
            finders = _start(
                group,
                tail.follow(position),
                scans.remove_for_ever(),
                scans.scan_for_ever(list(self._terms.sources), self._told, self._gap.scanned),
                duties.pay_debts(),
                duties.end_what_expires(),
                duties.rescan_by_the_clock(self._terms.rescan_every),
                duties.serve_requests(),
                duties.serve_requests(pins=True),
                self._gap.keep(),
                watch(self._world.stream, self._world.papers.letters, desk.watermark, self._time, self._around),
            )
            workers = self._start_workers(group, duties)
            await first_of(stop, duties.generations_changed)
            await end(finders)
            await self._around.probe.reached("draining")
            began = self._around.clock.monotonic()
            await self._drain()
            await self._around.probe.reached("drained")
            await end(workers)
        rest = self._terms.drain - (self._around.clock.monotonic() - began)
        stored = await within(max(rest, LAST_WORDS), duties.save_checkpoint())
        await within(LAST_WORDS, self._gap.store())
        if not stop.is_set():
            raise _other_generations()
        return Farewell(self._coalescer.unsettled, stored)

    async def backfill(self, sources: Sequence[str], reason: str | None) -> None:
        """Scan these sources once, without the stream, and end; for no reason only where a scan is due or under way."""

        async def work(desk: Desk) -> None:
            if (why := reason) is not None:
                await self._around.persist("database", lambda: self._book.want(sources, why))
            async with Together() as group:
                scanning = group.create_task(self._scans(desk).scan_for_ever(sources, self._told, self._gap.scanned))
                await self._book.done(sources)
                await end([scanning])

        await self._once(work)

    async def look(
        self, keys: Sequence[DocKey], origin: Origin, discard: Sequence[object] = (), pin: Pin | None = None
    ) -> None:
        """Remove the chunk rows `discard` of a generation (None: the active one), then look at these documents once.

        Without the stream; of sources that are not watched, at nothing.
        """

        async def work(desk: Desk) -> None:
            if discard:
                store, leadership = self._world.papers.store, self._leadership
                await self._around.persist("database", lambda: store.discard(discard, leadership, pin))
            await desk.attend(self._book.watched(keys), origin)

        await self._once(work)

    async def forget(self, keys: Sequence[DocKey]) -> None:
        """Drop the dead letters of these documents."""
        letters, leadership = self._world.papers.letters, self._leadership
        await self._around.persist("database", lambda: letters.drop(keys, leadership))

    async def _once(self, work: Callable[[Desk], Awaitable[None]]) -> None:
        position = await self._begin(following=False)
        desk, duties = self._desk(position)
        async with Together() as group:
            workers = self._start_workers(group, duties)
            await work(desk)
            await duties.pay_debts_now()
            await self._coalescer.drained()
            await end(workers)
        await duties.save_checkpoint()

    async def _begin(self, *, following: bool) -> Position:
        """Where the stream goes on.

        A first position is taken before any scan, so that nothing falls between the two, and stored before any scan can
        keep its place: the next start would take a later one, and go on behind changes that nobody saw. A source that
        the stored position says nothing of is scanned, which is noted before any position is stored that speaks for it.
        Who does not follow the stream leaves the position where it is, and with it what it says of other sources.
        """
        persist, checkpoints = self._around.persist, self._world.papers.checkpoints
        await self._take_over_generations()
        stored = await persist("database", checkpoints.load)
        await self._time.ask()
        if stored is None:
            now = Position(await persist("stream", self._world.stream.now))
            stored = Checkpoint(now, self._around.clock.now(), frozenset(self._terms.sources))
            await persist("database", self._book.start_over)
            await self._around.probe.reached("starting")
            await persist("database", partial(checkpoints.save, stored, self._leadership))
        else:
            await persist("database", lambda: self._book.load(stored.sources))
            if not following:
                self._followed |= stored.sources
        if following:
            await self._gap.load(self._book.sources)
        self._around.health.scans_pending(self._book.urgent)
        return stored.position

    def _leave_to_the_next(self) -> None:
        """Give what the drain had no time for its outcome: the leader that begins now looks at all of it again.

        The process goes on, and with it the sums of its figures (promise: conservation).
        """
        for source, changes in self._coalescer.abandon().items():
            for _ in range(changes):
                self._around.meter.settled(source, "superseded", None)

    async def _take_over_generations(self) -> None:
        """See that those are the ones that live, and remove what was dropped: nobody writes there any more."""
        pins, leadership = self._world.papers.pins, self._leadership
        try:
            stored = await self._around.persist("database", pins.load)
        except NothingPinned as error:  # the database was dropped while this process stood by
            raise _other_generations() from error
        if stored.live != tuple(target.pin for target in self._terms.targets):
            raise _other_generations()
        if stored.leaving:
            await self._around.probe.reached("generation_dropped")
            await self._around.persist("database", lambda: pins.clear(leadership))

    def _desk(self, position: Position) -> tuple[Desk, Duties]:
        desk = Desk(self._coalescer, self._book, position, self._around)
        return desk, Duties(self._world.papers, desk, self._book, self._leadership, self._around, self._followed)

    def _start_workers(self, group: asyncio.TaskGroup, duties: Duties) -> list[asyncio.Task[None]]:
        world, terms, around = self._world, self._terms, self._around
        papers = world.papers
        steps = Steps(
            coalescer=self._coalescer,
            shaper=Shaper(
                world.documents,
                terms.sources,
                terms.target.tokens,
                around.clock,
                terms.offload,
                {target.pin: target.tokens for target in terms.beside},
            ),
            target=terms.target,
            embed=EmbedStep(papers.store, world.embedder, world.beside),
            publisher=Publisher(papers.store, self._leadership, around, world.published),
            undertaker=Undertaker(papers.letters, self._leadership, around),
            beside=terms.beside,
        )
        runner = Runner(steps, papers.store, around, self._gap.settled)
        pumps = [runner.pump() for _ in range(PUMPS)] + [runner.pump(urgent_only=True), runner.lookout()]
        return _start(group, duties.keep_checkpoint(), duties.keep_lease(), *pumps)

    def _scans(self, desk: Desk) -> ScanLoop:
        papers, around = self._world.papers, self._around
        scanner = Scanner(self._world.documents, papers.store, papers.letters, desk, around)
        return ScanLoop(scanner, self._book, papers.store, self._leadership, around)

    async def _drain(self) -> None:
        """Give what is in hand its outcome, as far as the time allows; the rest is read again by the next start."""
        self._coalescer.close()
        await within(self._terms.drain, self._coalescer.drained())


def _other_generations() -> GenerationsChanged:
    return GenerationsChanged("other generations of chunks live now (`pin status`): begin again")


def _start(group: asyncio.TaskGroup, *duties: Coroutine[object, object, None]) -> list[asyncio.Task[None]]:
    return [group.create_task(duty, name=duty.__qualname__) for duty in duties]
