"""What was embedded once is not sent again: the vectors of a document's former versions, over both drivers."""

from bson import Timestamp

from brain.knowledge.chunk import chunk_id, text_hash
from tests.contract.test_knowledge_store import OLLIE, at, publication
from worker.model import Leadership, Publication
from worker.mongo.knowledge import MongoKnowledge

PAGE = [f"section {n}" for n in range(80)]
DIGESTS = [text_hash(text) for text in PAGE]


def gone(version: Timestamp, chunks: int) -> Publication:
    """The end of a document of so many chunks."""
    return publication(OLLIE, version, remove=[chunk_id(str(OLLIE), f"p{n}") for n in range(chunks)], deleted=True)


async def test_a_long_page_that_is_deleted_and_saved_anew(store: MongoKnowledge, leader: Leadership) -> None:
    """Every one of its texts is still there, and after the edit of a part too."""
    await store.publish([publication(OLLIE, at(1), *PAGE)], leader)
    await store.publish([gone(at(2), len(PAGE))], leader)
    assert len(await store.vectors(DIGESTS)) == len(PAGE)
    await store.publish([publication(OLLIE, at(3), *PAGE)], leader)
    await store.publish([publication(OLLIE, at(4), *(f"new {text}" for text in PAGE))], leader)
    assert len(await store.vectors(DIGESTS)) == len(PAGE)


async def test_a_row_does_not_grow_for_ever(store: MongoKnowledge, leader: Leadership) -> None:
    """Of a short document the last 16 are kept, however often it is edited."""
    for turn in range(40):
        await store.publish([publication(OLLIE, at(turn), f"turn {turn}")], leader)
    kept = await store.vectors([text_hash(f"turn {turn}") for turn in range(40)])
    assert set(kept) == {text_hash(f"turn {turn}") for turn in range(23, 40)}
