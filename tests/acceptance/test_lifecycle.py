"""Signals, drain, watchdog and the death of tasks, in real child processes (K3, K5, K6)."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from worker.clock import SystemClock
from worker.errors import ConfigurationFault, FencedOff, Poison, Unreachable
from worker.lifecycle import Notifier, Stop, beat, code_of, supervise
from worker.observe.health import Heartbeat

SOON = 10.0
"""Seconds: half a drain, a third of what the child works. A start or an end on a busy machine takes less."""

CHILD = """
import asyncio, sys, time
from worker.lifecycle import Stop, supervise
from brain.knowledge.log import configure

async def main(mode):
    with Stop(float(sys.argv[3])) as stop:
        async def work():
            print("up", flush=True)
            if mode == "blocked":
                time.sleep(30)
            if mode == "thread":
                asyncio.get_running_loop().run_in_executor(None, time.sleep, 30)
            await stop.requested.wait()
            print("draining", flush=True)
            if mode != "idle":
                await asyncio.sleep(30)

        async def forever():
            await asyncio.Event().wait()

        code = await supervise(work(), {"lease": forever()}, stop, float(sys.argv[2]))
        print("bye", flush=True)
        return code

with configure("INFO", colour=False):
    code = asyncio.run(main(sys.argv[1]))
sys.exit(code)
"""


@contextmanager
def child(mode: str, drain: float = 20, limit: float = 60) -> Generator[subprocess.Popen[str]]:
    """A process that runs until it is signalled; it has said that it is up."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, mode, str(drain), str(limit)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> tuple[int, str, list[str], float]:
    """Exit code, what it said, its log actions, and the seconds until its end."""
    began = time.monotonic()
    out, err = process.communicate(timeout=15)
    took = time.monotonic() - began
    return process.returncode, out, [str(json.loads(text)["action"]) for text in err.splitlines()], took


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_drains(number: signal.Signals) -> None:
    """PM2's signal and systemd's mean the same: finish, then exit 0; idle waits for no drain."""
    with child("idle") as process:
        process.send_signal(number)
        code, out, actions, took = end(process)
    assert (code, out) == (0, "draining\nbye\n")
    assert actions == ["stop_requested"]
    assert took < SOON


def test_a_drain_has_an_end() -> None:
    """What does not finish in the drain's time is cut off, and that is still exit 0."""
    with child("busy", drain=0.3) as process:
        process.send_signal(signal.SIGTERM)
        code, out, actions, took = end(process)
    assert (code, out) == (0, "draining\nbye\n")
    assert actions == ["stop_requested", "drain_cut"]
    assert took < SOON


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_stops_now(second: signal.Signals) -> None:
    """Whoever asks twice, with the same signal or the other one, does not wait for the drain."""
    with child("busy") as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "draining\n"
        process.send_signal(second)
        code, out, actions, took = end(process)
    assert (code, out) == (0, "bye\n")
    assert actions == ["stop_requested", "stop_now"]
    assert took < SOON


def test_a_second_signal_ends_a_blocked_process_too() -> None:
    """Even while the event loop is stuck, the process is gone a second after the second signal."""
    with child("blocked") as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        code, out, _, took = end(process)
    assert (code, out) == (0, "")
    assert took < SOON


@pytest.mark.parametrize("mode", ["blocked", "thread"])
def test_a_stop_has_an_end_whatever_still_runs(mode: str) -> None:
    """A stuck event loop, or a thread that nobody can end (a model at work): gone at the limit, exit 0, and it says so.

    The limit is WORKER_DRAIN_SECONDS.
    """
    with child(mode, drain=0.2, limit=1.0) as process:
        process.send_signal(signal.SIGINT)
        code, _, actions, took = end(process)
    assert (code, actions[-1]) == (0, "stop_cut")
    assert took < SOON


def test_hangup_does_not_stop() -> None:
    """A closed terminal is logged, and the worker works on."""
    with child("idle") as process:
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["action"] == "signal_ignored"
        process.send_signal(signal.SIGTERM)
        code, out, actions, _ = end(process)
    assert (code, out, actions) == (0, "draining\nbye\n", ["stop_requested"])


def open_files() -> int:
    """How many descriptors this process holds, where the system says so."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


async def test_former_handlers_are_restored() -> None:
    """Leaving the context leaves no trace: handlers, wake-up descriptor, thread and pipe."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    former = [signal.getsignal(number) for number in numbers]
    files = open_files()
    with Stop() as stop:
        assert [signal.getsignal(number) for number in numbers] != former
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.requested.wait(), 5)
        assert not stop.now.is_set()
    assert [signal.getsignal(number) for number in numbers] == former
    assert open_files() == files


async def test_a_stop_may_be_asked_for_without_signals() -> None:
    """The program itself may ask, once for a drain, twice for the end."""
    stop = Stop()
    stop.request()
    assert (stop.requested.is_set(), stop.now.is_set()) == (True, False)
    stop.request()
    assert stop.now.is_set()


async def forever() -> None:
    """Run until cancelled."""
    await asyncio.Event().wait()


async def nothing() -> None:
    """End at once."""


async def fail(error: BaseException) -> None:
    """End with an error."""
    raise error


async def test_the_end_of_the_main_task_ends_the_others() -> None:
    """Main ends: the others are cancelled, exit 0."""
    assert await supervise(nothing(), {"lease": forever()}, Stop(), 1) == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("bug"), 70),
        (Poison("a text got through"), 70),
        (FencedOff("another one leads"), 75),
        (Unreachable("no answer"), 75),
        (ConfigurationFault("wrong"), 78),
        (ExceptionGroup("two", [FencedOff("x"), ConfigurationFault("y")]), 78),
        (ExceptionGroup("two", [FencedOff("x"), RuntimeError("y")]), 70),
    ],
)
async def test_a_dead_task_takes_the_worker_with_it(error: Exception, code: int) -> None:
    """Whichever task dies, the process ends with the code that its error stands for."""
    assert code_of(error) == code
    assert await supervise(forever(), {"lease": forever(), "tail": fail(error)}, Stop(), 1) == code
    assert await supervise(fail(error), {"lease": forever()}, Stop(), 1) == code


async def test_a_background_task_that_merely_ends_is_a_bug() -> None:
    """There is no half a worker: a background task that is over before its time stops everything with 70."""
    assert await supervise(forever(), {"lease": nothing()}, Stop(), 1) == 70


async def test_a_cancelled_supervisor_leaves_no_task() -> None:
    """Cancelling the supervisor cancels what it supervises."""
    began, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await forever()
        finally:
            ended.set()

    task = asyncio.create_task(supervise(work(), {"lease": forever()}, Stop(), 1))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


class StepClock:
    """A clock whose sleeps are steps that the test takes."""

    def __init__(self) -> None:
        self.asleep = asyncio.Event()
        self.go = asyncio.Event()
        self.slept: list[float] = []

    def now(self) -> datetime:
        """The wall time."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """The sum of the sleeps."""
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        """Wait for the test."""
        self.asleep.set()
        await self.go.wait()
        self.go.clear()
        self.slept.append(seconds)

    async def step(self) -> None:
        """Let one sleep end, and wait for the next one."""
        await self.asleep.wait()
        self.asleep.clear()
        self.go.set()
        await self.asleep.wait()


@asynccontextmanager
async def running(work: "asyncio.Task[None]") -> AsyncGenerator[None]:
    """A task for the time of a block."""
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait({work})


@pytest.mark.parametrize("abstract", [False, True])
async def test_systemd_is_told(tmp_path: Path, *, abstract: bool) -> None:
    """READY, WATCHDOG and STOPPING arrive at a socket of either kind; no ping while only a restart helps."""
    name = f"@trickbook-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    healthy = True
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0{name[1:]}" if abstract else name)
        listener.settimeout(5)
        notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1500000", "WATCHDOG_PID": str(os.getpid())})
        assert notifier.watchdog == 1.5
        notifier.ready()
        assert listener.recv(100) == b"READY=1"
        clock = StepClock()
        async with running(asyncio.create_task(beat(Heartbeat(SystemClock()), notifier, lambda: healthy, clock))):
            await clock.step()
            assert [listener.recv(100), listener.recv(100)] == [b"WATCHDOG=1"] * 2
            assert clock.slept == [0.5]
            healthy = False
            await clock.step()
            notifier.stopping()
            assert listener.recv(100) == b"STOPPING=1"


def test_without_systemd_nothing_is_told() -> None:
    """No socket, an odd one, or one that nobody listens on: nothing happens; a watchdog for another pid is not ours."""
    for environ in ({}, {"NOTIFY_SOCKET": "relative"}, {"NOTIFY_SOCKET": "/nobody/listens"}):
        Notifier(environ).ready()
    assert Notifier({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}).watchdog is None
    assert Notifier({"WATCHDOG_USEC": "soon"}).watchdog is None
