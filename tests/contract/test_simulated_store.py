"""The simulation's store keeps the rules of the contract too: those of its tests that look through the port alone."""

import pytest

from brain.knowledge.pin import Pin
from tests.contract.test_knowledge_store import (
    KICKFLIP,
    OLLIE,
    at,
    publication,
    test_a_debt_of_a_time_that_never_was_is_paid,
    test_a_face_that_is_not_so_owes_one_look,
    test_a_refresh_alone_leaves_debts_too,
    test_a_rename_makes_no_debt_of_its_own,
    test_a_renamed_neighbour_leaves_a_debt,
    test_a_thousand_documents_in_one_transaction,
    test_a_version_that_nobody_has_read_guards_nothing,
    test_nothing_to_publish_is_nothing,
    test_what_has_expired_is_found,
)
from tests.support.sim_database import Database
from tests.support.sim_ports import SimLease, SimStore
from tests.support.sim_weather import Rates, Weather, dice
from worker.errors import FencedOff
from worker.model import Leadership

__all__ = [
    "test_a_debt_of_a_time_that_never_was_is_paid",
    "test_a_face_that_is_not_so_owes_one_look",
    "test_a_refresh_alone_leaves_debts_too",
    "test_a_rename_makes_no_debt_of_its_own",
    "test_a_renamed_neighbour_leaves_a_debt",
    "test_a_thousand_documents_in_one_transaction",
    "test_a_version_that_nobody_has_read_guards_nothing",
    "test_nothing_to_publish_is_nothing",
    "test_what_has_expired_is_found",
]


@pytest.fixture
def simulated(pin: Pin) -> Database:
    """An empty simulated database, at a time after every version of these tests."""
    return Database(pin, {}, lambda: 2_000_000.0)


@pytest.fixture
def weather() -> Weather:
    """Nothing goes wrong."""
    calm = Rates(0, 0, 0, 0, 0, 0, 0, 0, 0)
    return Weather(dice("calm"), calm)


@pytest.fixture
def store(simulated: Database, weather: Weather) -> SimStore:
    """The store under test."""
    return SimStore(simulated, weather)


@pytest.fixture
async def leader(simulated: Database, weather: Weather) -> Leadership:
    """Who may write."""
    leadership = await SimLease(simulated, weather).acquire()
    assert leadership is not None
    return leadership


async def test_versions_tombstones_and_the_fence(
    store: SimStore, leader: Leadership, simulated: Database, weather: Weather
) -> None:
    """Older ones are superseded, a tombstone holds, and a former leader writes nothing."""
    batch = [publication(OLLIE, at(5), "new"), publication(KICKFLIP, at(1), "flick")]
    assert await store.publish(batch, leader) == ["applied", "applied"]
    assert await store.publish([publication(OLLIE, at(4), "old")], leader) == ["superseded"]
    gone = publication(OLLIE, at(6), remove=[f"{OLLIE}/p0"], deleted=True)
    assert await store.publish([gone], leader) == ["deleted"]
    assert await store.publish([publication(OLLIE, at(5), "late")], leader) == ["superseded"]
    assert await store.page("trickipedia", None, 10) == [KICKFLIP]
    assert (await store.states([OLLIE]))[OLLIE].chunks == ()
    heir = await SimLease(simulated, weather).acquire()
    assert heir is not None
    with pytest.raises(FencedOff):
        await store.publish([publication(KICKFLIP, at(9), "x")], leader)
    assert await store.publish([publication(KICKFLIP, at(9), "x")], heir) == ["applied"]
