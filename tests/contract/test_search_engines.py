"""One suite for both engines: order, scores, filters, limits, refusals, and what is passed over in silence."""

from collections.abc import AsyncGenerator

import numpy as np
import pytest
from bson.binary import Binary, BinaryVectorDtype
from hypothesis import given, settings
from hypothesis import strategies as st

from brain.knowledge.chunk import Vector
from brain.knowledge.search import MOST_LIMIT, Filter
from tests.support.fake_mongod import FakeMongod
from tests.support.search_stage import KINDS, Kind, Stage, chunk, on_the_embedded, on_the_fake, vector

EAST = vector(1)
ROWS = [
    chunk("t/o:1/full", vector(1), "bmx"),
    chunk("t/o:2/full", vector(1, 1), "bmx"),
    chunk("t/o:3/full", vector(0, 1), "surfing"),
    chunk("t/o:4/full", vector(-1)),
    chunk("d/o:5/intro", vector(2, 0, 0.1), None, "doc"),
]


@pytest.fixture(params=KINDS)
async def stage(request: pytest.FixtureRequest, mongo_uri: str, database_name: str) -> AsyncGenerator[Stage]:
    """Each engine; the fake's index is ready, the embedded server's collection is empty."""
    kind: Kind = request.param
    if kind == "atlas":
        with FakeMongod() as server:
            async with on_the_fake(server) as made:
                yield made
    else:
        async with on_the_embedded(mongo_uri, database_name, follow=kind != "exact") as made:
            yield made


async def found(stage: Stage, query: Vector = EAST, limit: int = 10, where: Filter = Filter()) -> list[str]:  # noqa: B008 - frozen
    """The ids of the hits."""
    return [hit.id for hit in await stage.engine.search(query, limit, where)]


async def test_nearest_first_with_its_score(stage: Stage) -> None:
    """(1 + cosine) / 2, whatever the lengths of the vectors; fields without the vector."""
    await stage.fill(ROWS)
    hits = await stage.engine.search(EAST * 7, 10, Filter())
    assert [hit.id for hit in hits] == ["t/o:1/full", "d/o:5/intro", "t/o:2/full", "t/o:3/full", "t/o:4/full"]
    expected = [1.0, (1 + 2 / np.hypot(2, 0.1)) / 2, (1 + np.sqrt(0.5)) / 2, 0.5, 0.0]
    assert np.allclose([hit.score for hit in hits], expected, atol=2e-6)
    assert hits[0].fields["text"] == "the text of t/o:1/full"
    assert "embedding" not in hits[0].fields
    assert "_score" not in hits[0].fields
    assert "_id" not in hits[0].fields


async def test_equal_scores_are_in_the_order_of_ids(stage: Stage) -> None:
    """Whatever order the rows came in."""
    await stage.fill([chunk(f"t/{name}/full", vector(1, 1)) for name in "cabed"] + [chunk("t/z/full", vector(1))])
    assert await found(stage) == ["t/z/full", *(f"t/{name}/full" for name in "abcde")]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (Filter(sport="bmx"), ["t/o:1/full", "t/o:2/full"]),
        (Filter(doc_type="doc"), ["d/o:5/intro"]),
        (Filter("surfing", "trick"), ["t/o:3/full"]),
        (Filter("surfing", "doc"), []),
        (Filter("chess"), []),
        (Filter(doc_type="poem"), []),
    ],
)
async def test_filters_are_equality(stage: Stage, where: Filter, ids: list[str]) -> None:
    """On sport and kind, both where both are named; a chunk without a sport passes no filter by sport."""
    await stage.fill(ROWS)
    assert await found(stage, where=where) == ids
    every = {hit.id: hit.score for hit in await stage.engine.search(EAST, 10, Filter())}
    assert all(every[hit.id] == hit.score for hit in await stage.engine.search(EAST, 10, where))


async def test_limits(stage: Stage) -> None:
    """The best so many, all when there are fewer; out of bounds is an error of the caller."""
    await stage.fill(ROWS)
    assert await found(stage, limit=2) == ["t/o:1/full", "d/o:5/intro"]
    assert len(await found(stage, limit=MOST_LIMIT)) == len(ROWS)
    for wrong in (0, -1, MOST_LIMIT + 1):
        with pytest.raises(ValueError, match="between 1 and 10,000"):
            await found(stage, limit=wrong)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        (EAST[:3], "3 dimensions and the index 4"),
        (np.ones(5, np.float32), "5 dimensions and the index 4"),
        (np.empty(0, np.float32), "0 dimensions and the index 4"),
        (EAST * 0, "points nowhere"),
        (EAST * np.float32("nan"), "points nowhere"),
        (vector(float("inf")), "points nowhere"),
    ],
)
async def test_query_vectors_that_are_none(stage: Stage, query: Vector, told: str) -> None:
    """Another width names both numbers; all zero and not finite are refused."""
    await stage.fill(ROWS)
    with pytest.raises(ValueError, match=told):
        await found(stage, query)


async def test_what_cannot_be_compared_is_passed_over(stage: Stage) -> None:
    """Atlas leaves such documents out of its index without a word; plain lists of numbers are vectors too."""
    wrong: dict[str, object] = {
        "narrow": EAST[:3],
        "wide": np.ones(5, np.float32),
        "zero": EAST * 0,
        "bytes": Binary.from_vector([1, 0, 0, 0], BinaryVectorDtype.INT8),
        "generic": Binary(bytes(18), 0),
        "text": "1,0,0,0",
        "null": None,
        "short list": [1, 0],
        "zero list": [0, 0, 0, 0],
        "list of texts": [1, 0, 0, "0"],
    }
    rows = [chunk(f"t/{name}/full", value) for name, value in wrong.items()]
    rows += [chunk("t/foreign/full", EAST, model="another/model"), chunk("t/list/full", [1, 0.0, 0, 0])]
    missing = chunk("t/missing/full", None)
    del missing["embedding"]
    await stage.fill([*rows, missing, *ROWS])
    assert sorted(await found(stage)) == sorted(["t/list/full", *(row["_id"] for row in ROWS)])


async def test_a_chunk_is_held_when_its_own_vector_finds_it(stage: Stage) -> None:
    """Not by another vector, not through a filter that it does not pass, not when it is not there."""
    await stage.fill(ROWS)
    holds = stage.engine.holds
    assert await holds("t/o:1/full", EAST * 3, Filter("bmx", "trick"))
    assert await holds("t/o:4/full", -EAST, Filter())
    assert not await holds("t/o:1/full", vector(1, 0.1), Filter())
    assert not await holds("t/o:1/full", EAST, Filter("surfing"))
    assert not await holds("t/o:9/full", EAST, Filter())


async def test_nothing_stored_is_nothing_found(stage: Stage) -> None:
    """A ready index, or none that is needed, and no chunk."""
    assert await found(stage) == []


WHOLE = st.lists(st.integers(-3, 3), min_size=4, max_size=4).filter(any)
SPORTS = st.sampled_from(["bmx", "surfing", None])


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(st.tuples(WHOLE, SPORTS), min_size=1, max_size=25),
    query=WHOLE,
    limit=st.integers(1, 30),
    sport=SPORTS,
)
async def test_both_engines_say_the_same(
    mongo_uri: str,
    rows: list[tuple[list[int], str | None]],
    query: list[int],
    limit: int,
    sport: str | None,
) -> None:
    """The same scores in the same order; the same ids but for ties at the cut, where Atlas may choose."""
    stored = [chunk(f"t/{n:02}/full", np.array(v, np.float32), s) for n, (v, s) in enumerate(rows)]
    asked, where = np.array(query, np.float32), Filter(sport)
    with FakeMongod() as server:
        async with on_the_fake(server) as atlas, on_the_embedded(mongo_uri, "test_both", follow=False) as exact:
            await atlas.fill(stored)
            await exact.fill(stored)
            theirs = await atlas.engine.search(asked, limit, where)
            ours = await exact.engine.search(asked, limit, where)
    assert np.allclose([hit.score for hit in ours], [hit.score for hit in theirs], atol=2e-6)
    last = theirs[-1].score if theirs else 0.0
    assert {h.id for h in ours if h.score > last + 2e-6} == {h.id for h in theirs if h.score > last + 2e-6}
    if len(theirs) < limit:
        assert {h.id for h in ours} == {h.id for h in theirs}
