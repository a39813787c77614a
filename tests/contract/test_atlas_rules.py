"""Atlas' own rules: that the fake refuses what Atlas refuses, and what our engine makes of every state of an index."""

from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

import pytest
from bson.binary import Binary, BinaryVectorDtype
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from brain.knowledge.connect import Target, open_client
from brain.knowledge.errors import (
    Fatal,
    IndexMissing,
    IndexNotReady,
    IndexUnusable,
    KnowledgeError,
    PinMismatch,
    Refused,
    Unavailable,
    Unreachable,
)
from brain.knowledge.pin import Model, Pin
from brain.knowledge.pins import ensure_pin
from brain.knowledge.search import Filter
from brain.knowledge.search.atlas import pipeline
from brain.knowledge.search.choose import Mode, search_engine
from brain.knowledge.search.index import definition
from brain.knowledge.search.service import KnowledgeSearch
from brain.knowledge.search.vectors import binary
from tests.support.fake_mongod import Cut, Fail, FakeMongod
from tests.support.fake_mongod.search import BUILDING, FAILED, PENDING, READY, State
from tests.support.fake_mongod.server import DATABASE
from tests.support.search_stage import PIN, FixedEmbedder, Stage, chunk, on_the_fake, vector

EAST = vector(1)
LOCAL = ReadConcern("local")
Row = dict[str, Any]


@pytest.fixture
def server() -> Generator[FakeMongod]:
    """The fake, with search."""
    with FakeMongod() as started:
        started.search.enabled = True
        yield started


@pytest.fixture
async def stage(server: FakeMongod) -> AsyncGenerator[Stage]:
    """The engine before it, with one chunk."""
    async with on_the_fake(server) as made:
        await made.fill([chunk("t/o:1/full", EAST, "bmx")])
        yield made


def sent(server: FakeMongod, name: str) -> list[Row]:
    """The first stages of this name that came in."""
    firsts = [command["pipeline"][0] for command in server.asked("aggregate")]
    return [first[name] for first in firsts if name in first]


# --- the fake is as strict as Atlas ---


def changed(**fields: object) -> Row:
    """A good stage with these fields instead; `...` takes one away."""
    stage = {"index": PIN.index, "path": "embedding", "queryVector": binary(EAST), "limit": 5, "exact": True, **fields}
    return {name: value for name, value in stage.items() if value is not ...}


@pytest.mark.parametrize(
    ("fields", "code", "told"),
    [
        ({"limit": 0}, 7912700, "positive"),
        ({"limit": "5"}, 8575100, "number"),
        ({"limit": ...}, 8, "limit"),
        ({"path": ...}, 8, "path"),
        ({"queryVector": ...}, 8, "queryVector"),
        ({"k": 5}, 8, "k"),
        ({"exact": ...}, 8, "numCandidates"),
        ({"numCandidates": 100}, 8, "omitted"),
        ({"exact": False, "numCandidates": 4}, 8, "limit"),
        ({"exact": False, "numCandidates": 10_001}, 8, "bounds"),
        ({"exact": False, "numCandidates": 0}, 8, "bounds"),
        ({"path": "text"}, 8, "not indexed as vector"),
        ({"queryVector": [1.0, 0.0]}, 8, "indexed with 4 dimensions but queried with 2"),
        ({"queryVector": []}, 8, "queried with 0"),
        ({"queryVector": [0.0] * 4}, 8, "zero vector"),
        ({"queryVector": [float("nan"), 0.0, 0.0, 1.0]}, 8, "position 0"),
        ({"filter": {"title": "x"}}, 8, "needs to be indexed as filter"),
        ({"filter": {"$or": [{"title": {"$gt": 1}}]}}, 8, "needs to be indexed as filter"),
        ({"filter": {"sport": {"$regex": "b"}}}, 8, "not supported"),
        ({"filter": {"sport": {"$elemMatch": {}}}}, 8, "not supported"),
        ({"filter": {"$expr": {}}}, 8, "not supported"),
        ({"filter": {"sport": {"$eq": {"a": 1}}}}, 8, "type"),
        ({"filter": {"sport": Binary(b"x")}}, 8, "type"),
    ],
)
async def test_refused_stages(server: FakeMongod, stage: Stage, fields: Row, code: int, told: str) -> None:
    """Each rule of the stage, of the query vector and of the filter."""
    async with open_client(Target(server.uri, DATABASE)) as client:
        chunks = client[DATABASE][PIN.collection].with_options(read_concern=LOCAL)
        with pytest.raises(OperationFailure, match=told) as caught:
            await chunks.aggregate([{"$vectorSearch": changed(**fields)}])
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, 1),
        ({"sport": "bmx"}, 1),
        ({"sport": {"$in": ["bmx", "mtb"]}, "docType": {"$ne": "doc"}}, 1),
        ({"$nor": [{"sport": "bmx"}]}, 0),
        ({"$and": [{"sport": {"$gte": "a"}}, {"sport": {"$not": {"$lt": "b"}}}]}, 1),
        ({"sport": {"$nin": ["bmx"]}}, 0),
        ({"sport": {"$exists": True}}, 1),
        ({"title": None}, 1),
    ],
)
async def test_filters_that_are_taken(server: FakeMongod, stage: Stage, wanted: Row, found: int) -> None:
    """Every operator of the documentation; a comparison with null needs no declared path."""
    async with open_client(Target(server.uri, DATABASE)) as client:
        chunks = client[DATABASE][PIN.collection].with_options(read_concern=LOCAL)
        rows = await (await chunks.aggregate([{"$vectorSearch": changed(filter=wanted)}])).to_list()
    assert len(rows) == found


async def test_where_a_search_stage_may_stand(server: FakeMongod, stage: Stage) -> None:
    """First, and in no read concern but local: our clients' majority is refused."""
    async with open_client(Target(server.uri, DATABASE)) as client:
        chunks = client[DATABASE][PIN.collection]
        refused: list[tuple[list[Row], int]] = [
            ([{"$match": {}}, {"$vectorSearch": changed()}], 40602),
            ([{"$vectorSearch": changed()}], 72),
            ([{"$listSearchIndexes": {"name": PIN.index}}], 72),
        ]
        for stages, code in refused:
            with pytest.raises(OperationFailure) as caught:
                await chunks.aggregate(stages)
            assert caught.value.code == code


async def test_a_query_of_another_element_type_finds_nothing(server: FakeMongod, stage: Stage) -> None:
    """Whole numbers against float32 vectors: no error, and no hits."""
    async with open_client(Target(server.uri, DATABASE)) as client:
        chunks = client[DATABASE][PIN.collection].with_options(read_concern=LOCAL)
        query = Binary.from_vector([1, 0, 0, 0], BinaryVectorDtype.INT8)
        assert await (await chunks.aggregate([{"$vectorSearch": changed(queryVector=query)}])).to_list() == []


# --- what our engine sends ---


async def test_exact_below_ten_thousand_chunks_and_candidates_above(server: FakeMongod, stage: Stage) -> None:
    """Never both; twenty candidates a hit, at most 10,000; the query is a binary float32 vector."""
    await stage.engine.search(EAST, 5, Filter("bmx", "trick"))
    row = chunk("t/o:1/full", EAST)
    server.store.rows(PIN.collection).update({b"%d" % n: {**row, "_id": n} for n in range(9_999)})
    for limit in (1, 50, 900):
        await stage.engine.search(EAST, limit, Filter())
    first, *others = sent(server, "$vectorSearch")
    assert first["exact"] is True
    assert first["filter"] == {"sport": {"$eq": "bmx"}, "docType": {"$eq": "trick"}}
    assert first["queryVector"].as_vector().dtype == BinaryVectorDtype.FLOAT32
    assert [(other["limit"], other["numCandidates"]) for other in others] == [(1, 20), (50, 1000), (900, 10_000)]
    assert all("exact" not in other and "filter" not in other for other in others)


def test_the_vector_stays_at_the_server() -> None:
    """The last stage takes it out."""
    assert pipeline(PIN, EAST, 5, Filter(), exact=True)[-1] == {"$project": {"embedding": 0}}


# --- what is wrong is told apart ---


@pytest.mark.parametrize(
    ("state", "wanted", "told"),
    [
        (PENDING, IndexNotReady, "PENDING"),
        (BUILDING, IndexNotReady, "BUILDING"),
        (State("BUILDING", queryable=False, silent=True), IndexNotReady, "BUILDING"),
        (FAILED, IndexUnusable, "index status"),
        (State("STALE", queryable=False), IndexUnusable, "STALE"),
    ],
)
async def test_states_of_an_index(
    server: FakeMongod, stage: Stage, state: State, wanted: type[KnowledgeError], told: str
) -> None:
    """One that cannot be searched answers with an error or with nothing; we say why, and whether waiting helps."""
    server.search.put(PIN.collection, PIN.index, definition(PIN), state)
    with pytest.raises(wanted, match=told) as caught:
        await stage.engine.search(EAST, 5, Filter())
    assert type(caught.value) is wanted


async def test_a_stale_index_that_answers_is_used(server: FakeMongod, stage: Stage) -> None:
    """It is behind, and `index status` says so; old answers are better than none."""
    server.search.put(PIN.collection, PIN.index, definition(PIN), State("STALE"))
    assert len(await stage.engine.search(EAST, 5, Filter())) == 1


async def test_a_missing_index_is_not_no_answer(server: FakeMongod, stage: Stage) -> None:
    """Atlas answers with no rows and no error; with a ready index nothing near is nothing found."""
    assert await stage.engine.search(EAST, 5, Filter("chess")) == []
    server.search.indexes.clear()
    with pytest.raises(IndexMissing, match="index ensure"):
        await stage.engine.search(EAST, 5, Filter())


@pytest.mark.parametrize(
    ("fields", "where", "told"),
    [
        (definition(Pin("m", 8))["fields"], Filter(), "8 dimensions, the pin 4"),
        (definition(PIN)["fields"][:2], Filter(doc_type="trick"), "docType is no filter field"),
        (definition(PIN)["fields"][1:], Filter(), "no vector field"),
        ([], Filter(), "vectorSearch"),
    ],
)
async def test_a_wrong_definition_is_named(
    server: FakeMongod, stage: Stage, fields: list[Mapping[str, Any]], where: Filter, told: str
) -> None:
    """Atlas' refusal is one code for everything; we look what is wrong and say what to do."""
    server.search.put(PIN.collection, PIN.index, {"fields": fields})
    with pytest.raises(IndexUnusable, match=told) as caught:
        await stage.engine.search(EAST, 5, where)
    assert "--update" in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        (Fail(13), Refused),
        (Fail(462), Unavailable),
        (Fail(489), Unavailable),
        (Fail(50), Unavailable),
        (Fail(4242), Fatal),
        (Cut(), Unreachable),
    ],
)
async def test_a_search_that_fails(
    server: FakeMongod, stage: Stage, fault: Fail | Cut, wanted: type[KnowledgeError]
) -> None:
    """Refused, overloaded and out of reach are each their own; what nobody knows stays what it was."""
    server.script.always("aggregate", fault)
    with pytest.raises(wanted) as caught:
        await stage.engine.search(EAST, 5, Filter())
    server.script.calm()
    assert type(caught.value) is wanted


async def test_a_chunk_that_the_index_has_not_taken_in_yet(server: FakeMongod, stage: Stage) -> None:
    """What is found is read from the collection, by the place in the index: only its own vector proves it."""
    index = server.search.indexes[PIN.collection, PIN.index]
    index.lagging = server.store.find(PIN.collection, {})
    await stage.fill([chunk("t/o:1/full", vector(0, 1), "bmx"), chunk("t/o:2/full", EAST)])
    assert [hit.id for hit in await stage.engine.search(vector(0, 1), 5, Filter())] == ["t/o:1/full"]
    assert not await stage.engine.holds("t/o:1/full", vector(0, 1), Filter("bmx"))
    assert not await stage.engine.holds("t/o:2/full", EAST, Filter())
    index.lagging = None
    assert await stage.engine.holds("t/o:1/full", vector(0, 1), Filter("bmx"))
    assert await stage.engine.holds("t/o:2/full", EAST, Filter())


# --- the whole way of a query ---


@pytest.mark.parametrize(("mode", "engine"), [("auto", "atlas"), ("atlas", "atlas"), ("exact", "exact")])
async def test_which_engine(server: FakeMongod, stage: Stage, mode: Mode, engine: str) -> None:
    """On a server with search the setting decides."""
    async with open_client(Target(server.uri, DATABASE)) as client:
        chosen = await search_engine(client[DATABASE], PIN, mode)
        assert chosen.name == engine
        assert [hit.id for hit in await chosen.search(EAST, 5, Filter())] == ["t/o:1/full"]


async def test_every_state_has_its_type(server: FakeMongod, stage: Stage) -> None:
    """Nothing indexed, another pin, missing, being built, nothing relevant, found: a caller tells them by type."""
    embedder = FixedEmbedder({"east": EAST})
    async with open_client(Target(server.uri, DATABASE)) as client:
        search = KnowledgeSearch(client[DATABASE], embedder)
        with pytest.raises(IndexNotReady, match="nothing is indexed"):
            await search.search("east")
        await ensure_pin(client[DATABASE], embedder.model)
        other = KnowledgeSearch(client[DATABASE], FixedEmbedder({}, Model("other/model", 4, 100)))
        with pytest.raises(PinMismatch):
            await other.search("east")
        index = server.search.indexes.pop((PIN.collection, PIN.index))
        with pytest.raises(IndexMissing):
            await search.search("east")
        server.search.put(PIN.collection, PIN.index, definition(PIN), BUILDING, BUILDING, BUILDING, READY)
        with pytest.raises(IndexNotReady, match="BUILDING"):
            await search.search("east")
        server.search.indexes[PIN.collection, PIN.index] = index
        assert (await search.search("east", sport="mtb")).hits == ()
        assert [hit.id for hit in (await search.search("east")).hits] == ["t/o:1/full"]
        await search.close()
