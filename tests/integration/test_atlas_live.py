"""`$vectorSearch` itself: TEST_ATLAS_URI or Atlas Local; skipped where there is neither."""

import asyncio

import numpy as np
import pytest
from pymongo.operations import SearchIndexModel

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Target, open_client
from brain.knowledge.errors import IndexMissing
from brain.knowledge.pin import Pin
from brain.knowledge.search import Filter
from brain.knowledge.search.atlas import AtlasSearch, index_state
from brain.knowledge.search.choose import search_engine
from brain.knowledge.search.exact import ExactSearch
from brain.knowledge.search.index import Listed, definition
from brain.knowledge.search.vectors import binary

PIN = Pin("m", 8, "knowledge_chunks_test", "knowledge_vec_test")
POLL_SECONDS = 2.0
READY_SECONDS = 180  # Atlas says minutes at worst; creation returns long before the index can be searched
ROWS = 40


def _vectors(count: int) -> list[Vector]:
    return list(np.random.default_rng(7).standard_normal((count, 8)).astype(np.float32))


@pytest.mark.slow
async def test_both_engines_answer_alike(atlas_uri: str, database_name: str) -> None:
    """A missing index is told; once it is caught up, Atlas and the exact engine agree on order, scores and filters."""
    client = open_client(Target(atlas_uri, database_name))
    database = client[database_name]
    collection = await database.create_collection(PIN.collection)
    rows = [
        {"_id": f"{i:03}", "model": "m", "docType": "trick", "sport": "bmx" if i % 2 else None, "embedding": binary(v)}
        for i, v in enumerate(_vectors(ROWS))
    ]
    await collection.insert_many(rows)
    atlas = await search_engine(database, PIN)
    assert isinstance(atlas, AtlasSearch)
    query = _vectors(ROWS + 1)[-1]
    with pytest.raises(IndexMissing):
        await atlas.search(query, 5, Filter())
    await collection.create_search_index(SearchIndexModel(definition(PIN), PIN.index, "vectorSearch"))
    async with asyncio.timeout(READY_SECONDS):
        while not await _caught_up(await index_state(collection, PIN.index), atlas, query):  # noqa: ASYNC110 no event
            await asyncio.sleep(POLL_SECONDS)
    exact = ExactSearch(collection, PIN)
    for where in (Filter(), Filter("bmx"), Filter("bmx", "trick"), Filter("mtb")):
        ours, theirs = await exact.search(query, 10, where), await atlas.search(query, 10, where)
        assert [hit.id for hit in ours] == [hit.id for hit in theirs]
        assert np.allclose([hit.score for hit in ours], [hit.score for hit in theirs], atol=1e-4)
    await client.close()


async def _caught_up(state: Listed | None, atlas: AtlasSearch, query: Vector) -> bool:
    """Queryable is not caught up: every row must be found."""
    assert state is None or state.status != "FAILED"
    if state is None or not state.queryable:
        return False
    return len(await atlas.search(query, ROWS, Filter())) == ROWS
