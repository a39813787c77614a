"""Real processes for tests: the worker and the fake embedder, each ended by its pid, waited for by what they say."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")

PATIENCE: Final = 60.0
"""Seconds that a test waits before it believes that something hangs: a bound, never a measurement."""

ROOT: Final = Path(__file__).parents[2]
KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR")


def eventually(probe: Callable[[], T | None], what: str, patience: float = PATIENCE) -> T:
    """Ask again and again until the answer is true; fails saying what never came."""
    deadline = time.monotonic() + patience
    while True:
        answer = probe()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.02)  # between two questions to another process; nothing is assumed to take this long


def environment(**settings: str) -> dict[str, str]:
    """The environment of a child: nothing of this machine's settings but what any program needs."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), **settings}


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> dict[str, Any]:
        """The one JSON value on stdout."""
        return cast("dict[str, Any]", json.loads(self.out))


def command(*arguments: str, env: Mapping[str, str], module: str = "worker") -> Finished:
    """Run a command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=dict(env),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def page(port: int, path: str) -> tuple[int, str]:
    """The status and the body of a page on loopback; 0 while nothing answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


@dataclass(slots=True)
class Worker:
    """A running `worker run`."""

    child: subprocess.Popen[bytes]
    log: Path
    port: int = 0

    def lines(self) -> list[dict[str, Any]]:
        """What it logged so far: JSON lines, since its stderr is no terminal."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def page(self, path: str) -> tuple[int, str]:
        """The status and the body of a page of its status server."""
        return page(self.port, path)

    def readiness(self) -> dict[str, Any]:
        """The body of /readyz, {} while nothing answers."""
        body = self.page("/readyz")[1]
        return json.loads(body) if body else {}

    def metric(self, name: str) -> float:
        """The sum of the samples whose name (with labels) starts so."""
        lines = self.page("/metrics")[1].splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def until_ready(self) -> None:
        """Wait until /readyz answers 200 as leader."""

        def ready() -> bool:
            assert self.child.poll() is None, self.log.read_text()
            told = self.readiness()
            return bool(told.get("ready")) and told.get("role") == "leader"

        eventually(ready, f"readiness; last: {self.readiness()}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and wait for its end; its exit code."""
        self.child.send_signal(number)
        return self.child.wait(PATIENCE)


@contextmanager
def worker(folder: Path, env: Mapping[str, str], *arguments: str, program: Sequence[str] = ()) -> Generator[Worker]:
    """Run the worker in the background; killed at the end if it still runs."""
    log = folder / f"worker-{time.monotonic_ns()}.log"
    port = free_port()
    settings = {**env, "WORKER_METRICS_PORT": str(port)}
    started = [sys.executable, *(program or ("-m", "worker", "run")), *arguments]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            started, env=settings, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=out
        ) as child,
    ):
        try:
            yield Worker(child, log, port)
        finally:
            if child.poll() is None:
                child.kill()
            child.wait(PATIENCE)


@dataclass(frozen=True, slots=True)
class Embedder:
    """A fake embedder in a child process."""

    url: str

    def counters(self) -> dict[str, int]:
        """How many calls and texts it has answered."""
        with urllib.request.urlopen(f"{self.url.removesuffix('/v1')}/counters", timeout=5) as reply:  # noqa: S310 - loopback
            return json.loads(reply.read())

    def script(self, faults: Mapping[str, Mapping[str, Any]]) -> None:
        """Order faults by call number, or `*` for every call."""
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.url.removesuffix('/v1')}/script", data=json.dumps(faults).encode(), method="POST"
        )
        with contextlib.closing(urllib.request.urlopen(request, timeout=5)):  # noqa: S310 - loopback
            pass


@contextmanager
def embedder(dimensions: int = 1536) -> Generator[Embedder]:
    """Run the fake embedder as a child process."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.fake_embedder", "--port", "0", "--dimensions", str(dimensions)],
        env=environment(),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as child:
        try:
            assert child.stdout is not None
            yield Embedder(json.loads(child.stdout.readline())["base_url"])
        finally:
            child.kill()


def free_port() -> int:
    """A port of this machine that is free now."""
    import socket  # noqa: PLC0415 - for this alone

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
