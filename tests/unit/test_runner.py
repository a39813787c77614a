"""The runner over a simulated world: one outcome for each change, whatever became of it."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import cast

from bson import Timestamp

from tests.support import virtual
from tests.support.sim_source import POISON
from tests.support.sim_stage import FAIR, TARGET, TRICKS, Stage, document, in_place, trick
from tests.support.sim_weather import Weather, dice
from worker.model import Change, DocKey, Document, Leadership, Origin, Shaped
from worker.pipeline.coalesce import Coalescer, Received
from worker.pipeline.dead_letters import Undertaker
from worker.pipeline.embed import EmbedStep
from worker.pipeline.publish import Publisher
from worker.pipeline.runner import Runner, Steps
from worker.pipeline.shape import Shaper, T
from worker.sources.source import Setting, Source


class Line:
    """A coalescer with pumps behind it."""

    def __init__(self, stage: Stage, source: Source = TRICKS) -> None:
        around, papers = stage.around, stage.papers
        self.stage = stage
        self.coalescer = Coalescer(stage.clock, 0.3, 100)
        steps = Steps(
            coalescer=self.coalescer,
            shaper=Shaper(stage.documents, {"tricks": source}, TARGET.tokens, stage.clock, in_place),
            target=TARGET,
            embed=EmbedStep(papers.store, stage.embedder),
            publisher=Publisher(papers.store, Leadership(1), around.meter),
            undertaker=Undertaker(papers.letters, Leadership(1), around),
        )
        self.runner = Runner(steps, papers.store, around)

    async def look(self, *keys: DocKey, origin: Origin = "stream") -> dict[str, int]:
        """Have documents looked at; how many outcomes of each kind that gave."""
        before = dict(self.stage.meter.outcomes)
        for key in keys:
            await self.coalescer.put(Received(Change(key, origin, wall=self.stage.now()), lambda: None))
            self.stage.meter.received("tricks")
        await self.coalescer.drained()
        after = self.stage.meter.outcomes
        assert self.stage.meter.came_in == after.total()
        return {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}


@asynccontextmanager
async def working(line: Line, pumps: int = 2) -> AsyncGenerator[Line]:
    """The line with its pumps running; what ends one ends the test."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(line.runner.pump()) for _ in range(pumps)]
        yield line
        for task in tasks:
            task.cancel()


async def pay(line: Line) -> None:
    """Pay debts until there are none; a few rounds must do."""
    for _ in range(5):
        if not (owing := list(await line.stage.papers.store.owing(10))):
            return
        await line.look(*owing, origin="refresh")
    message = "debts for ever"
    raise AssertionError(message)


def test_the_life_of_a_document() -> None:
    """Written, left alone, changed in part, hidden, shown again and deleted: the right outcome and rows each time."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            key = stage.put(document(1, "Ollie", "pop", "slide"))
            assert await line.look(key) == {"applied": 1}
            assert stage.texts(1) == ["Ollie: pop", "Ollie: slide"]
            assert await line.look(key) == {"unchanged": 1}
            stage.put(document(1, "Ollie", "pop", "level out"))
            assert await line.look(key) == {"applied": 1}
            assert stage.client.sent == ["Ollie: pop", "Ollie: slide", "Ollie: level out"]
            stage.put(document(1, "Ollie", "pop", hidden=True))
            assert await line.look(key) == {"deleted": 1}
            assert stage.texts(1) == []
            stage.put(document(1, "Ollie", "pop"))
            assert await line.look(key) == {"applied": 1}
            stage.delete(1)
            assert await line.look(key) == {"deleted": 1}
            assert await line.look(key) == {"unchanged": 1}

    virtual.run(main)


def test_many_changes_of_one_document_have_one_outcome_each() -> None:
    """The newest gets the document's, the others were superseded."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            key = stage.put(document(1, "Ollie", "pop"))
            assert await line.look(key, key, key) == {"applied": 1, "superseded": 2}

    virtual.run(main)


def test_a_text_that_is_stored_anywhere_is_not_embedded_again() -> None:
    """Two documents that say the same, at once or one after the other: one request."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            await line.look(stage.put(document(1, "Ollie", "pop")), stage.put(document(2, "Ollie", "pop")))
            await line.look(stage.put(document(3, "Ollie", "pop")))
            assert stage.client.sent == ["Ollie: pop"]
            assert stage.texts(1) == stage.texts(2) == stage.texts(3)

    virtual.run(main)


def test_a_poison_document_steps_aside_alone() -> None:
    """Its neighbours in the batch are stored; it has a letter, with what failed and how often; mended, it has none."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            good = stage.put(document(1, "Ollie", "pop"))
            text = stage.put(document(2, "Pop", "x", poison="text"))
            shape = stage.put(document(3, "Shape", "x", poison="shape"))
            assert await line.look(good, text, shape) == {"applied": 1, "dead_lettered": 2}
            assert stage.texts(1) == ["Ollie: pop"]
            assert {key: letter.reason for key, letter in stage.db.letters.items()} == {
                text: "Poison",
                shape: "UnreadableDocument",
            }
            assert await line.look(text) == {"dead_lettered": 1}
            assert stage.db.letters[text].tries == 2
            assert POISON not in stage.db.letters[text].detail
            stage.put(document(2, "Pop", "x"))
            assert await line.look(text) == {"applied": 1}
            assert set(stage.db.letters) == {shape}

    virtual.run(main)


class Buggy:
    """A source that stumbles over some documents."""

    collection = "tricks"
    chunker_version = 1

    def neighbours(self, document: Document) -> list[DocKey]:
        """Stumbles over one."""
        return [] if document["name"] != "neighbours" else cast("list[DocKey]", document["nothing"])

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """Stumbles over others."""
        if document["name"] in {"shape", "neighbours"}:
            message = f"stumbled over {document['body']}"
            raise TypeError(message)
        return TRICKS.shape(document, setting)


def test_a_bug_in_a_source_is_the_letter_of_one_document() -> None:
    """The worker lives, the others are stored, and the letter says what kind of bug but nothing of the text."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage, Buggy())) as line:
            keys = [stage.put(document(at, name, "secret")) for at, name in enumerate(("ok", "shape", "neighbours"))]
            assert await line.look(*keys) == {"applied": 1, "dead_lettered": 2}
            for letter in stage.db.letters.values():
                assert "TypeError" in letter.detail
                assert "secret" not in letter.detail

    virtual.run(main)


def test_a_rename_leaves_a_debt_and_the_debt_is_paid_by_a_look() -> None:
    """Who names it is stored anew; a look that pays sends nobody else round."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            a, b = stage.put(document(1, "Ollie", links=(2,))), stage.put(document(2, "Pop", links=(1,)))
            await line.look(a, b)
            await pay(line)
            stage.put(document(2, "Kickflip", links=(1,)))
            await line.look(b)
            assert list(await stage.papers.store.owing(10)) == [a]
            await pay(line)
            assert stage.texts(1) == ["Ollie leads to Kickflip"]
            assert list(await stage.papers.store.owing(10)) == []

    virtual.run(main)


def test_a_name_that_went_there_and_back_leaves_nobody_wrong() -> None:
    """A neighbour that was read in between shows the other name; the renamed one's own look finds it."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            a, b = stage.put(document(1, "Ollie", links=(2,))), stage.put(document(2, "Pop", "x"))
            await line.look(a, b)
            stage.put(document(2, "Kickflip", "x"))
            await line.look(a)
            assert stage.texts(1) == ["Ollie leads to Kickflip"]
            stage.put(document(2, "Pop", "x"))
            await line.look(b)
            await pay(line)
            assert stage.texts(1) == ["Ollie leads to Pop"]

    virtual.run(main)


def test_a_dead_letter_still_tells_its_neighbours() -> None:
    """They show its new name though it is not stored itself."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            a, b = stage.put(document(1, "Ollie", links=(2,))), stage.put(document(2, "Pop", "x"))
            await line.look(a, b)
            await pay(line)
            stage.put(document(2, "Kickflip", "x", poison="text"))
            assert await line.look(b) == {"dead_lettered": 1}
            await pay(line)
            assert stage.texts(1) == ["Ollie leads to Kickflip"]

    virtual.run(main)


def test_two_dead_letters_do_not_send_each_other_round_for_ever() -> None:
    """What is stored of them shows old names and cannot be mended: they are tried once more, and then left."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            names = ("Ollie", "Pop"), ("Heelflip", "Kickflip")
            for (one, two), poison in zip(names, (None, "text"), strict=True):
                keys = [
                    stage.put(document(1, one, "x", links=(2,), poison=poison)),
                    stage.put(document(2, two, "x", links=(1,), poison=poison)),
                ]
                for key in keys:
                    await line.look(key)
                await pay(line)
            assert set(stage.db.letters) == {trick(1), trick(2)}

    virtual.run(main)


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


def test_a_look_that_waits_for_the_database_goes_on_where_it_was() -> None:
    """A failed read or write decides nothing: not ready, tried again, and then the right outcome."""

    async def main() -> None:
        failing = Failing((1, 3, 4, 6, 7))
        stage = Stage(weather=failing)
        async with working(Line(stage), pumps=1) as line:
            key = stage.put(document(1, "Ollie", "pop"))
            assert await line.look(key) == {"applied": 1}
            assert failing.count > 7
            assert stage.texts(1) == ["Ollie: pop"]
            assert stage.health.reasons == {}
            assert stage.db.ledger[key].version >= Timestamp(1000, 1)

    virtual.run(main)


def test_a_debt_survives_an_answer_that_was_lost() -> None:
    """A document that shows a face which is not stored yet owes a look, also when its publication is stored twice."""

    async def main() -> None:
        weather = Failing(())
        stage = Stage(weather=weather)
        async with working(Line(stage), pumps=1) as line:
            a = stage.put(document(1, "Ollie", links=(2,)))
            stage.put(document(2, "Pop", "x"))
            weather.loses_an_answer = True
            assert await line.look(a) == {"applied": 1}
            assert not weather.loses_an_answer
            assert list(await stage.papers.store.owing(10)) == [a]

    virtual.run(main)
