"""The process and its surroundings: signals at every phase, tasks that die, full disks, few descriptors, proxies."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from pymongo import AsyncMongoClient

from brain.knowledge.settings import load
from tests.support.crashes import Store, doomed, texts, trick, until_called, until_leading
from tests.support.processes import PATIENCE, ROOT, Embedder, Worker, eventually, free_port, worker
from worker.app import composed, connect, quiet_surroundings
from worker.config import PREFIX, WorkerSettings
from worker.errors import EXIT_BUG

pytestmark = pytest.mark.slow

DRAIN = 2.0
SPARE = 15.0  # seconds that a busy machine may need beside the drain: a bound, not a measurement
DOCUMENTS = 200


def _until_up(running: Worker) -> None:
    eventually(lambda: running.page("/healthz")[0] == 200, "the status server")


def _reach(phase: str, running: Worker, fake: Embedder, calls: int) -> None:
    match phase:
        case "starting":
            _until_up(running)
        case "idle":
            until_leading(running)
        case _:
            until_called(fake, calls)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("phase", ["starting", "scanning", "idle", "stalled"])
def test_a_signal_ends_it_in_every_phase(
    phase: str, number: signal.Signals, tmp_path: Path, env: dict[str, str], database: Store, fake: Embedder
) -> None:
    """Exit 0 within the drain's time, whatever it was doing; what was left is done by the next start."""
    database.trickipedia.insert_many([trick(f"Trick {n}", f"Says {n}.") for n in range(DOCUMENTS)])
    faults = {"scanning": {"kind": "slow", "seconds": 0.5}, "stalled": {"kind": "stall_headers"}}
    fake.script({"*": faults.get(phase, {})})
    calls = fake.counters()["calls"]
    lost = {"ATLAS_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=500"} if phase == "starting" else {}
    with worker(tmp_path, {**env, **lost, "WORKER_DRAIN_SECONDS": str(DRAIN)}) as running:
        _reach(phase, running, fake, calls)
        began = time.monotonic()
        assert running.stop(number) == 0, running.log.read_text()
        assert time.monotonic() - began < DRAIN + SPARE
    fake.script({"*": {}})
    with worker(tmp_path, env) as running:
        until_leading(running)
        assert len(texts(database)) == DOCUMENTS
        assert running.stop(number) == 0


@pytest.mark.parametrize("place", ["event", "taken", "checkpointing", "scanned", "draining"])
def test_there_is_no_half_a_worker(place: str, tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """A task that dies of a bug ends the process with 70, and the next start leads at once and catches up."""
    database.trickipedia.insert_one(trick("Ollie", "Pop."))
    with doomed(tmp_path, env, place, act="raise") as running:
        if place == "draining":
            until_leading(running)
            running.child.terminate()
        assert running.child.wait(PATIENCE) == EXIT_BUG
        assert "task_died" in running.log.read_text()
    with worker(tmp_path, env) as running:
        until_leading(running)
        eventually(lambda: set(texts(database)) == {"Ollie"}, "the chunk")
        assert running.stop() == 0


@contextmanager
def _in_shell(folder: Path, env: dict[str, str], before: str, after: str) -> Generator[Worker]:
    """A worker started by a shell that arranges its limits and its descriptors."""
    port = free_port()
    line = f'{before} exec "$0" -m worker run {after}'
    settings = {**env, "WORKER_METRICS_PORT": str(port)}
    with subprocess.Popen(["sh", "-c", line, sys.executable], env=settings, cwd=ROOT) as child:
        try:
            (folder / "log").touch()
            yield Worker(child, folder / "log", port)
        finally:
            if child.poll() is None:
                child.kill()


def test_a_full_disk_and_a_closed_stdout_stop_nothing(tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """Lines that cannot be written are dropped and counted; the work goes on and the exit is clean."""
    with _in_shell(tmp_path, env, "", ">&- 2>/dev/full") as running:
        until_leading(running)
        database.trickipedia.insert_one(trick("Ollie", "Pop."))
        eventually(lambda: set(texts(database)) == {"Ollie"}, "the chunk")
        assert running.stop() == 0


def test_few_descriptors_suffice(tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """64 descriptors are enough, and as many changes and scrapes as you like leave none behind."""
    with _in_shell(tmp_path, env, "ulimit -n 64;", ">/dev/null 2>&1") as running:
        until_leading(running)
        held: list[int] = []
        for turn in range(1, 6):
            database.trickipedia.insert_one(trick(f"Trick {turn}", "Pop."))
            eventually(lambda: len(texts(database)) == turn, "the chunk")  # noqa: B023 - asked before `turn` moves
            for _ in range(100):
                assert running.page("/metrics")[0] == 200
            held.append(len(list(Path(f"/proc/{running.child.pid}/fd").iterdir())))
        assert held[-1] <= held[0] + 8, held
        assert running.stop() == 0


def test_proxies_of_the_environment_are_ignored(tmp_path: Path, env: dict[str, str], database: Store) -> None:
    """A proxy that is not there changes nothing: the key goes to the provider alone."""
    nowhere = "http://127.0.0.1:1"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    with worker(tmp_path, {**env, **dict.fromkeys(names, nowhere)}) as running:
        until_leading(running)
        database.trickipedia.insert_one(trick("Ollie", "Pop."))
        eventually(lambda: set(texts(database)) == {"Ollie"}, "the chunk")
        assert running.stop() == 0


async def test_nothing_blocks_the_event_loop(env: dict[str, str], tmp_path: Path) -> None:
    """A leader on the real adapters, from the lease to the drain: blockbuster finds no blocking call of ours."""
    settings = load(WorkerSettings, env, PREFIX, embedded=False)
    client = AsyncMongoClient[dict[str, object]](env["ATLAS_URI"])
    backend = client[env["ATLAS_DB"]]
    await backend.trickipedia.insert_many([trick(f"Trick {n}", f"Says {n}.") for n in range(20)])
    around = quiet_surroundings(settings)
    stop = asyncio.Event()
    async with connect(settings, embedded=False, data=tmp_path) as connection, composed(connection, around) as app:
        # The driver looks once, when its client is made, whether it is in a container; from here on nothing may block.
        with blockbuster_ctx(["worker", "brain"]):
            leadership = await app.lease.acquire()
            assert leadership is not None
            serving = asyncio.create_task(app.leader(leadership).serve(stop))
            async with asyncio.timeout(PATIENCE):
                await backend.trickipedia.insert_one(trick("Late", "Pop."))
                await backend.trickipedia.delete_one({"name": "Trick 0"})
                while not serving.done() and await backend.knowledge_chunks.count_documents({"title": "Late"}) != 1:
                    await around.clock.sleep(0.02)  # between two questions
                stop.set()
                await serving
            await app.release(leadership)
    await client.close()
