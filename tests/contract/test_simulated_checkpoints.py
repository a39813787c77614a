"""The simulation's positions keep the contract too: those of its tests that look through the port alone."""

import pytest

from brain.knowledge.pin import Pin
from tests.contract.test_checkpoints import (
    test_a_former_leader_moves_no_position,
    test_a_gap_is_there_until_it_is_taken_away,
    test_positions_come_back_as_they_were,
)
from tests.support.sim_database import Database
from tests.support.sim_ports import SimCheckpoints, SimLease
from tests.support.sim_weather import Rates, Weather, dice
from worker.model import Leadership
from worker.ports import Checkpoints

__all__ = [
    "test_a_former_leader_moves_no_position",
    "test_a_gap_is_there_until_it_is_taken_away",
    "test_positions_come_back_as_they_were",
]


@pytest.fixture
def simulated(pin: Pin) -> Database:
    """An empty simulated database."""
    return Database(pin, {}, lambda: 0.0)


@pytest.fixture
def weather() -> Weather:
    """Nothing goes wrong."""
    return Weather(dice("calm"), Rates(0, 0, 0, 0, 0, 0, 0, 0, 0))


@pytest.fixture
def checkpoints(simulated: Database, weather: Weather) -> Checkpoints:
    """The port under test."""
    return SimCheckpoints(simulated, weather)


@pytest.fixture
async def leaders(simulated: Database, weather: Weather) -> tuple[Leadership, Leadership]:
    """A leader that is over, and the one that leads."""
    lease = SimLease(simulated, weather)
    former, leader = await lease.acquire(), await lease.acquire()
    assert former is not None
    assert leader is not None
    return former, leader
