"""A coalescer with pumps behind it over the simulated world, and a database that fails on order."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from brain.knowledge.chunk import Vector
from tests.support.sim_stage import FAIR, TARGET, TRICKS, Stage, in_place
from tests.support.sim_weather import Weather, dice
from worker.errors import Poison
from worker.model import Change, DocKey, Leadership, Origin
from worker.pipeline.coalesce import Coalescer, Received
from worker.pipeline.dead_letters import Undertaker
from worker.pipeline.embed import EmbedStep
from worker.pipeline.publish import Publisher
from worker.pipeline.runner import Runner, Steps
from worker.pipeline.shape import Shaper, T
from worker.ports import TextEmbedder
from worker.sources.source import Source


class Line:
    """A coalescer with pumps behind it."""

    def __init__(self, stage: Stage, source: Source = TRICKS, embedder: TextEmbedder | None = None) -> None:
        around, papers = stage.around, stage.papers
        self.stage = stage
        self.coalescer = Coalescer(stage.clock, 0.3, 100)
        steps = Steps(
            coalescer=self.coalescer,
            shaper=Shaper(stage.documents, {"tricks": source}, TARGET.tokens, stage.clock, in_place),
            target=TARGET,
            embed=EmbedStep(papers.store, embedder or stage.embedder),
            publisher=Publisher(papers.store, Leadership(1), around),
            undertaker=Undertaker(papers.letters, Leadership(1), around),
        )
        self.runner = Runner(steps, papers.store, around)

    async def look(self, *keys: DocKey, origin: Origin = "stream") -> dict[str, int]:
        """Have documents looked at; how many outcomes of each kind that gave."""
        before = dict(self.stage.meter.outcomes)
        for key in keys:
            await self.put(key, origin)
        await self.coalescer.drained()
        after = self.stage.meter.outcomes
        assert self.stage.meter.came_in == after.total()
        return {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}

    async def put(self, key: DocKey, origin: Origin = "stream") -> None:
        """Tell that a document changed."""
        await self.coalescer.put(Received(Change(key, origin, wall=self.stage.now()), lambda: None))
        self.stage.meter.received("tricks")


class ClosedDoor:
    """An embedder that lets nobody through while it is closed."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._embedder = embedder
        self.opens = asyncio.Event()
        self.opens.set()

    async def embed(self, texts: Sequence[str]) -> Sequence[Vector | Poison]:
        """As the embedder, once it is open."""
        await self.opens.wait()
        return await self._embedder.embed(texts)


@asynccontextmanager
async def working(line: Line, pumps: int = 2) -> AsyncGenerator[Line]:
    """The line with its pumps running; what ends one ends the test."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(line.runner.pump()) for _ in range(pumps)]
        tasks.append(group.create_task(line.runner.lookout()))
        yield line
        for task in tasks:
            task.cancel()


async def pay(line: Line) -> None:
    """Pay debts until there are none; a few rounds must do."""
    for _ in range(5):
        if not (owing := list(await line.stage.papers.store.owing(["tricks"], 10))):
            return
        await line.look(*owing, origin="refresh")
    message = "debts for ever"
    raise AssertionError(message)


class Failing(Weather):
    """Fair, but for some calls of the database, by their number."""

    def __init__(self, numbers: Iterable[int]) -> None:
        super().__init__(dice("failing"), FAIR)
        self.count = 0
        self.loses_an_answer = False
        self._numbers = set(numbers)

    async def read(self, answer: Callable[[], T]) -> T:
        """Fail or answer."""
        self._fail()
        return await super().read(answer)

    async def write(self, effect: Callable[[], T]) -> T:
        """Fail, or take effect and answer, or not."""
        self._fail()
        result = await super().write(effect)
        if self.loses_an_answer:
            self.loses_an_answer = False
            raise self.fault()
        return result

    def _fail(self) -> None:
        self.count += 1
        if self.count in self._numbers:
            raise self.fault()
