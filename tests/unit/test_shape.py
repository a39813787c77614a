"""Reading and shaping: how new a read must be, and what belongs to one moment."""

from collections.abc import Sequence
from typing import Final

from bson import Timestamp

from brain.knowledge.pin import Pin
from tests.support import virtual
from tests.support.sim_ports import SimDocuments
from tests.support.sim_source import SimSource, WordCounter
from tests.support.sim_stage import TRICKS, Stage, document, in_place, trick
from worker.errors import UnreadableDocument
from worker.model import DocKey, Reading, Shaped
from worker.pipeline.shape import Shaper, chunk_limit

TIPS: Final = SimSource("tips")


class Documents(SimDocuments):
    """Notes every read."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.db, stage.weather)
        self.reads: list[tuple[str, list[DocKey], Timestamp | None]] = []

    async def read(self, source: str, ids: Sequence[DocKey], after: Timestamp | None = None) -> Reading:
        """Note and read."""
        self.reads.append((source, list(ids), after))
        return await super().read(source, ids, after)


def shaper(stage: Stage) -> tuple[Shaper, Documents]:
    """A shaper of two sources."""
    stage.db.documents["tips"] = {}
    documents = Documents(stage)
    return Shaper(documents, {"tricks": TRICKS, "tips": TIPS}, WordCounter(), stage.clock, in_place), documents


def test_a_read_is_at_least_as_new_as_the_newest_event() -> None:
    """One read a source; the neighbours are read no older than what names them."""

    async def main() -> None:
        stage = Stage()
        one, documents = shaper(stage)
        a, b = stage.put(document(1, "Ollie", links=(2, 9))), stage.put(document(2, "Pop", "x", links=(1,)))
        tip = DocKey.of("tips", 1)
        looked = await one.look({a: Timestamp(3, 0), b: Timestamp(7, 0), trick(9): None, tip: None})
        at = stage.db.now()
        assert documents.reads == [
            ("tricks", [a, b, trick(9)], Timestamp(7, 0)),
            ("tricks", [trick(2), trick(9), trick(1)], at),
            ("tips", [tip], None),
        ]
        assert [found.key for found in looked] == [a, b, trick(9), tip]
        assert {found.version for found in looked} == {at}
        first, _, absent, _ = (found.shaped for found in looked)
        assert isinstance(first, Shaped)
        assert [part.text for part in first.parts] == ["Ollie leads to Pop"]
        assert first.faces == {trick(2): "Pop", trick(9): None}
        assert absent == Shaped()

    virtual.run(main)


def test_one_that_cannot_be_shaped_is_an_error_of_its_own() -> None:
    """The others of its batch are shaped."""

    async def main() -> None:
        stage = Stage()
        one, _ = shaper(stage)
        keys = [stage.put(document(1, "x", "y", poison="shape")), stage.put(document(2, "Pop", "x"))]
        bad, good = (found.shaped for found in await one.look(dict.fromkeys(keys)))
        assert isinstance(bad, UnreadableDocument)
        assert isinstance(good, Shaped)
        assert len(good.parts) == 1

    virtual.run(main)


def test_one_that_cannot_be_read_is_gone_in_no_generation() -> None:
    """Damaged bytes are no deletion: neither for the active model nor for another one with its own tokenizer."""

    async def main() -> None:
        stage = Stage()
        other = Pin("other/model", 4, "knowledge_chunks_other")
        beside = {other: WordCounter()}
        one = Shaper(stage.documents, {"tricks": TRICKS}, WordCounter(), stage.clock, in_place, beside)
        keys = [stage.put(document(1, "x", "y", poison="bytes")), stage.put(document(2, "Pop", "x")), trick(3)]
        bad, good, absent = await one.look(dict.fromkeys(keys))
        assert isinstance(bad.shaped, UnreadableDocument)
        assert isinstance(bad.beside[other], UnreadableDocument)
        assert len(bad.digest) == 64
        assert isinstance(good.beside[other], Shaped)
        assert absent.shaped == absent.beside[other] == Shaped()

    virtual.run(main)


def test_the_limit_is_the_smaller_of_512_and_the_window() -> None:
    """A model's window cuts silently what is longer."""
    small = WordCounter()
    small.window = 256
    assert (chunk_limit(WordCounter()), chunk_limit(small)) == (512, 256)
