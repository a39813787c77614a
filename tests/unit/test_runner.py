"""The runner over a simulated world: one outcome for each change, whatever became of it."""

import asyncio
from typing import cast

import pytest
from bson import Timestamp

from tests.support import virtual
from tests.support.sim_line import ClosedDoor, Failing, Line, working
from tests.support.sim_source import POISON
from tests.support.sim_stage import TRICKS, Stage, document
from worker.model import DocKey, Document, Shaped
from worker.pipeline.runner import LONG_WAIT
from worker.sources.source import Setting


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


def test_a_large_document_lets_the_small_ones_of_its_batch_go_first() -> None:
    """They were taken together; a book's thousand texts are no reason for a page to wait."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage)) as line:
            book = stage.put(document(1, "Book", *(f"page {number}" for number in range(100))))
            await line.look(book, stage.put(document(2, "Ollie", "pop")))
            assert stage.client.sent[0] == "Ollie: pop"
            assert len(stage.client.sent) == 101

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
        """Stumbles over another."""
        if document["name"] == "shape":
            message = f"stumbled over {document['body']}"
            raise TypeError(message)
        return TRICKS.shape(document, setting)


def test_a_bug_in_a_source_is_the_letter_of_one_document(caplog: pytest.LogCaptureFixture) -> None:
    """The worker lives, the others are stored; letter and log say what kind of bug and where, nothing of the text."""

    async def main() -> None:
        stage = Stage()
        async with working(Line(stage, Buggy())) as line:
            keys = [stage.put(document(at, name, "secret")) for at, name in enumerate(("ok", "shape", "neighbours"))]
            assert await line.look(*keys) == {"applied": 1, "dead_lettered": 2}
            details = [stage.db.letters[key].detail for key in keys[1:]]
            assert ["TypeError" in details[0], "KeyError" in details[1]] == [True, True]
            assert "secret" not in "".join(details)

    virtual.run(main)
    bugs = [vars(record) for record in caplog.records if vars(record)["action"] == "shape_bug"]
    stacks = [str(bug["fields"]["stack"]) for bug in bugs]
    assert [f"in {name}" in stack for name, stack in zip(("neighbours", "shape"), stacks, strict=True)] == [True, True]
    assert all(f'File "{__file__}", line ' in stack for stack in stacks)
    assert not any("secret" in f"{bug['msg']} {bug['args']} {bug['fields']} {bug['exc_info']}" for bug in bugs)


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


def test_what_needs_no_text_waits_for_no_embedder() -> None:
    """While every pump waits for vectors, a deleted and a hidden document go; the others come when it answers again."""

    async def main() -> None:
        stage = Stage()
        closed = ClosedDoor(stage.embedder)
        line = Line(stage, embedder=closed)
        async with working(line):
            await line.look(*(stage.put(document(n, f"Trick {n}", "pop")) for n in range(4)))
            closed.opens.clear()
            for number in range(100, 110):
                await line.put(stage.put(document(number, f"New {number}", "slide")))
                await asyncio.sleep(1.0)  # each pump takes one and waits with it
            stage.delete(0)
            for key in (DocKey.of("tricks", 0), stage.put(document(1, "Trick 1", "pop", hidden=True))):
                await line.put(key)
            await asyncio.sleep(LONG_WAIT)
            assert stage.texts(0) == stage.texts(1) == stage.texts(100) == []
            assert stage.meter.outcomes["deleted"] == 2
            closed.opens.set()
            await line.coalescer.drained()
            assert [stage.texts(n) for n in (2, 100, 109)] == [["Trick 2: pop"], ["New 100: slide"], ["New 109: slide"]]
        assert stage.meter.came_in == stage.meter.outcomes.total() == 16

    virtual.run(main)
