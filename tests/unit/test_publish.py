"""The publisher: how publications become transactions."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from bson import Timestamp

from brain.knowledge.chunk import Metadata
from tests.support import virtual
from tests.support.sim_database import Database
from tests.support.sim_ports import SimStore
from tests.support.sim_source import PIN
from tests.support.sim_stage import FAIR, Stage, trick
from tests.support.sim_weather import Weather, dice
from worker.errors import Conflict, DuplicateKey, KnowledgeError, Poison, Unstorable
from worker.model import ChunkDraft, Delta, DocKey, Leadership, LedgerRow, Outcome, Publication
from worker.pipeline.publish import MOST_CHUNKS, TRIES_ALONE, Publisher

METADATA: Final = Metadata("trick", "x")


class Store(SimStore):
    """Counts the transactions, and those that run at once; refuses a batch with what is `bad`."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, Weather(dice("w"), FAIR))
        self.bad: dict[DocKey, KnowledgeError] = {}
        self.batches: list[int] = []
        self.began = asyncio.Event()
        self.running = 0
        self.conflicts = 0

    async def publish(self, publications: Sequence[Publication], leadership: Leadership) -> Sequence[Outcome]:
        """Count, and fail as often as asked to."""
        self.batches.append(len(publications))
        self.began.set()
        self.running += 1
        assert self.running == 1, "one transaction at a time"
        try:
            if self.conflicts:
                self.conflicts -= 1
                message = "another writer"
                raise Conflict(message)
            for publication in publications:
                if publication.delta.key in self.bad:
                    raise self.bad[publication.delta.key]
            return await super().publish(publications, leadership)
        finally:
            self.running -= 1


def publication(number: int, chunks: int, version: int = 5) -> Publication:
    """A document that removes that many chunks: rows count, whatever is done with them."""
    key, at = trick(number), Timestamp(version, 0)
    return Publication(Delta(key, at, remove=tuple(map(str, range(chunks))), kept=1, ledger=LedgerRow(key, at)), {})


def test_whole_documents_as_many_as_fit() -> None:
    """A transaction holds at most MOST_CHUNKS rows, and a larger document goes alone; nothing needs no transaction."""

    async def main() -> None:
        stage = Stage()
        store = Store(stage.db)
        publisher = Publisher(store, Leadership(1), stage.around)
        sizes = [MOST_CHUNKS, 1, MOST_CHUNKS - 1, 1, 0, MOST_CHUNKS + 7, 2]
        outcomes = await publisher.publish([publication(number, size) for number, size in enumerate(sizes)])
        assert outcomes == ["applied"] * len(sizes)
        assert store.batches == [1, 2, 2, 1, 1]
        assert await publisher.publish([]) == []

    virtual.run(main)


def test_transactions_of_one_leader_queue_and_are_shared() -> None:
    """They would all meet at the lease row: one at a time; whoever waits meanwhile goes together, as far as it fits."""

    async def main() -> None:
        stage = Stage()
        store = Store(stage.db)
        publisher = Publisher(store, Leadership(1), stage.around)
        sizes = [1, 2, MOST_CHUNKS - 2, 1, 1]
        works = (publisher.publish([publication(number, size)]) for number, size in enumerate(sizes))
        assert await asyncio.gather(*works) == [["applied"]] * 5
        assert store.batches == [1, 2, 2]

    virtual.run(main)


def test_who_waits_survives_the_one_that_stores() -> None:
    """The one whose turn it is is cancelled in its transaction: the others store their own, and none waits for ever."""

    async def main() -> None:
        stage = Stage()
        store = Store(stage.db)
        publisher = Publisher(store, Leadership(1), stage.around)
        tasks = [asyncio.ensure_future(publisher.publish([publication(number, 1)])) for number in range(4)]
        await store.began.wait()
        tasks[0].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(outcomes[0], asyncio.CancelledError)
        assert outcomes[1:] == [["applied"]] * 3

    virtual.run(main)


def test_a_shared_conflict_is_tried_again_by_all() -> None:
    """Nothing of the transaction is stored, so each that shared it tries again, and what was stored counts once."""

    async def main() -> None:
        stage = Stage()
        store = Store(stage.db)
        publisher = Publisher(store, Leadership(1), stage.around)
        first = asyncio.ensure_future(publisher.publish([publication(0, 1)]))
        await store.began.wait()
        store.conflicts = 1
        others = [asyncio.ensure_future(publisher.publish([publication(number, 1)])) for number in (1, 2)]
        assert await asyncio.gather(first, *others) == [["applied"]] * 3
        assert stage.meter.actions["removed"] == 3
        assert stage.health.reasons == {}

    virtual.run(main)


def test_a_batch_that_is_stored_is_not_stored_again_for_a_later_one() -> None:
    """The second transaction fails and is tried again: the first is neither stored nor counted anew."""

    async def main() -> None:
        stage = Stage()
        store = Store(stage.db)
        publisher = Publisher(store, Leadership(1), stage.around)
        both = asyncio.ensure_future(publisher.publish([publication(0, MOST_CHUNKS), publication(1, 1)]))
        await store.began.wait()
        store.conflicts = 2
        assert await both == ["applied"] * 2
        assert store.batches == [1, 1, 1, 1]
        assert stage.meter.actions["removed"] == MOST_CHUNKS + 1

    virtual.run(main)


@pytest.mark.parametrize("error", [DuplicateKey("a key is there"), Poison("larger than 16 MB")], ids=str)
def test_what_can_never_be_stored_steps_aside_alone(error: KnowledgeError) -> None:
    """Those in its batch, and those of others in its transaction, are stored; a duplicate key is tried a few times."""

    async def main() -> None:
        stage = Stage()
        store = Store(stage.db)
        store.bad[trick(2)] = error
        publisher = Publisher(store, Leadership(1), stage.around)
        first = asyncio.ensure_future(publisher.publish([publication(0, 1)]))
        await store.began.wait()
        mine = asyncio.ensure_future(publisher.publish([publication(number, 1) for number in (1, 2, 3)]))
        others = asyncio.ensure_future(publisher.publish([publication(4, 1)]))
        assert await first == ["applied"]
        one, bad, three = await mine
        assert (one, three) == ("applied", "applied")
        assert isinstance(bad, Unstorable)
        assert await others == ["applied"]
        assert stage.meter.actions["removed"] == 4
        assert store.batches.count(1) <= 5 + TRIES_ALONE

    virtual.run(main)


def test_a_duplicate_key_that_passes_is_no_fault() -> None:
    """Two upserts met: the next try finds nothing in its way."""

    async def main() -> None:
        stage = Stage()
        store = Store(stage.db)
        store.bad[trick(1)] = DuplicateKey("a key is there")
        publisher = Publisher(store, Leadership(1), stage.around)
        working = asyncio.ensure_future(publisher.publish([publication(1, 1)]))
        await store.began.wait()
        await asyncio.sleep(0)
        store.bad.clear()
        assert await working == ["applied"]

    virtual.run(main)


def test_outcomes_come_in_order_and_only_what_was_stored_is_counted() -> None:
    """A newer stored version wins, and its loser counts no rows."""

    async def main() -> None:
        stage = Stage()
        db, meter = stage.db, stage.meter
        publisher = Publisher(Store(db), Leadership(1), stage.around)
        db.ledger[trick(1)] = LedgerRow(trick(1), Timestamp(9, 0))
        gone = publication(2, 3)
        assert gone.delta.ledger is not None
        gone = replace(gone, delta=replace(gone.delta, ledger=replace(gone.delta.ledger, deleted=True)))
        outcomes = await publisher.publish([publication(0, 2), publication(1, 7), gone])
        assert outcomes == ["applied", "superseded", "deleted"]
        assert (meter.actions["removed"], meter.actions["kept"]) == (5, 2)

    virtual.run(main)


def test_a_draft_needs_its_vector() -> None:
    """A publication without one is a bug, and nothing of its batch is counted."""

    async def main() -> None:
        stage = Stage()
        draft = ChunkDraft("tricks/n:1/a", "text", METADATA, "hash", "hash", 1)
        broken = Publication(Delta(trick(1), Timestamp(5, 0), write=(draft,)), {})
        with pytest.raises(KeyError):
            await Publisher(Store(stage.db), Leadership(1), stage.around).publish([broken])
        assert stage.meter.actions.total() == 0
        assert PIN.dimensions == 4

    virtual.run(main)
