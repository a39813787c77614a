"""A sample of stored vectors, embedded again."""

import numpy as np

from tests.support.sim_source import SimClient, vector_of
from tests.support.sim_stage import FAIR
from tests.support.sim_weather import Weather, dice
from worker.audit.sample import REQUEST, VectorSample
from worker.model import AuditedChunk, DocKey


def _row(number: int, *, ours: bool = True) -> AuditedChunk:
    text = f"text {number}"
    right = vector_of(text)
    vector = right * 2 if ours else right - right.mean()  # length says nothing, direction all
    return AuditedChunk(number, "tricks", DocKey.of("tricks", number), sound=True, text=text, vector=vector)


def test_every_row_has_the_same_chance() -> None:
    """Over many draws of 3 out of 12, each row is drawn about as often."""
    rng, drawn = dice("sample"), np.zeros(12)
    for _ in range(4000):
        sample = VectorSample(3, rng)
        for number in range(12):
            sample.offer(_row(number))
        assert len(sample.rows) == 3
        for row in sample.rows:
            drawn[int(str(row.id))] += 1
    assert drawn.min() > 850  # 1000 expected, standard deviation 27
    assert drawn.max() < 1150


async def test_vectors_of_another_model_are_named() -> None:
    """Also over several requests; what is right in direction is right."""
    client = SimClient(Weather(dice("sample"), FAIR))
    sample = VectorSample(1000, dice("sample"))
    wrong = {3, 70, 149}
    for number in range(150):
        sample.offer(_row(number, ours=number not in wrong))
    assert {row.id for row in await sample.foreign(client)} == wrong
    assert len(client.sent) == 150
    assert REQUEST < 150


async def test_nothing_is_asked_for_nothing() -> None:
    """A sample of size 0, or of an empty collection, costs nothing."""
    client = SimClient(Weather(dice("sample"), FAIR))
    empty = VectorSample(0, dice("sample"))
    empty.offer(_row(1))
    assert (len(empty.rows), await empty.foreign(client), client.sent) == (0, [], [])
