"""How soon a standby leads: within 15 s of a kill on another host, at once after a clean stop or a kill on its own."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.crashes import Record, Store, show, texts, trick
from tests.support.processes import Worker, eventually, worker

pytestmark = pytest.mark.slow

PROMISE: Final = 15.0  # seconds after a kill on another host: ten of silence, and what noticing takes
AT_ONCE: Final = 6.0
"""The standby looks once a second; less than the ten seconds of silence proves that it did not wait for them."""

ELSEWHERE: Final = "another-host/its-boot/its-namespace"


def _move_to_another_host(database: Store) -> None:
    """Let the lease say that its holder runs where the standby cannot see whether the process lives."""
    moved = database.freshness_leases.update_one({"_id": "worker"}, {"$set": {"holder.space": ELSEWHERE}})
    assert moved.modified_count == 1


def _kill(running: Worker) -> None:
    running.child.kill()
    assert running.child.wait() == -signal.SIGKILL


def _stop(running: Worker) -> None:
    assert running.stop() == 0


@dataclass(frozen=True, slots=True)
class End:
    """How a leader ends, where it seems to run, and within how many seconds the standby must lead."""

    name: str
    how: Callable[[Worker], None]
    elsewhere: bool
    bound: float


ENDS: Final = (
    End("killed on another host", _kill, elsewhere=True, bound=PROMISE),
    End("killed on this host", _kill, elsewhere=False, bound=AT_ONCE),
    End("stopped on another host", _stop, elsewhere=True, bound=AT_ONCE),
)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
def test_a_standby_takes_over(
    end: End, tmp_path: Path, env: dict[str, str], database: Store, record_property: Record
) -> None:
    """From the end of the leader to the standby's leadership; what nobody saw in between is stored afterwards."""
    with worker(tmp_path, env) as first, worker(tmp_path, env) as second:
        runners = (first, second)
        eventually(lambda: sorted(_role(one) for one in runners) == ["leader", "standby"], "a leader and a standby")
        leader, standby = sorted(runners, key=_role)
        leader.until_ready()
        if end.elsewhere:
            _move_to_another_host(database)
        end.how(leader)
        began = time.monotonic()
        database.trickipedia.insert_one(trick("Ollie", "While nobody led."))
        eventually(lambda: _role(standby) == "leader", "the takeover")
        took = time.monotonic() - began
        assert took < end.bound
        eventually(lambda: set(texts(database)) == {"Ollie"}, "what nobody saw")
        assert standby.stop() == 0
    show(record_property, f"takeover  {end.name}: {took:.1f} s")


def _role(running: Worker) -> str:
    return str(running.readiness().get("role"))
