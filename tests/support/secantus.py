"""A database server of a test's own: SecantusDB from the virtual environment, as a child process on a free port."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import free_port
from worker.mongo.ping import answers

IN_MEMORY: Final = ("--storage-path", ":memory:")
SHORT: Final = ("--oplog-max-entries", "50")
"""A history that a test can outrun."""
LONG: Final = ("--sync-on-commit", "--noop-heartbeat-seconds", "10", "--oplog-max-entries", "5000000")
"""A history that holds any backlog, with the sync and the heartbeat of production."""

_START_SECONDS: Final = 30
_STOP_SECONDS: Final = 15


@dataclass(frozen=True, slots=True)
class Secantus:
    """A running server; `address` is `host:port`."""

    address: str
    child: subprocess.Popen[bytes]

    @property
    def uri(self) -> str:
        """How the tests talk to it: without retryable writes, which slow this server down."""
        return f"mongodb://{self.address}/?replicaSet=secantus&retryWrites=false&heartbeatFrequencyMS=500"


@contextmanager
def secantus(folder: Path, *flags: str, port: int | None = None) -> Generator[Secantus]:
    """A server that answers, with its data and its log in `folder`; stopped at the end, or killed where it does not."""
    program = Path(sys.executable).parent / "secantusd-py"
    if not program.exists():
        pytest.skip("secantusd-py is not installed (extra `embedded`)")
    (folder / "empty.toml").touch()  # else it would read the configuration of whoever runs the tests
    address = f"127.0.0.1:{free_port() if port is None else port}"
    where = () if "--storage-path" in flags else ("--storage-path", str(folder / "db"))
    listen = ("--host", "127.0.0.1", "--port", address.partition(":")[2])
    with (
        (folder / "log").open("ab") as log,
        subprocess.Popen(
            [str(program), "--config", str(folder / "empty.toml"), *listen, *where, *flags],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as child,
    ):
        try:
            assert answers(f"mongodb://{address}/?directConnection=true", _START_SECONDS), (folder / "log").read_text()
            yield Secantus(address, child)
        finally:
            child.terminate()
            try:
                child.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
