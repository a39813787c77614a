"""The data folder of the embedded database: checked, locked, and its log kept short. See `worker.embedded`."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from worker.errors import ConfigurationFault, Unavailable

_LOCK_SECONDS: Final = 90.0  # longer than another starter may need
_LOG_BYTES: Final = 1_048_576
_LOG_LINE: Final = 300  # characters of the log quoted in an error
_FOREIGN_FILES: Final = ("WiredTiger", "WiredTiger.wt", "storage.bson", "mongod.lock", "PG_VERSION", "ibdata1")
_POLL_SECONDS: Final = 0.05


def prepare(data_dir: Path, *, create: bool = True) -> Path:
    """The folder, checked, and made if `create`.

    Raises ConfigurationFault for one that cannot be used, and without `create` for one that no database lives in.
    """
    folder = data_dir.expanduser().absolute()
    foreign = [name for name in _FOREIGN_FILES if (folder / name).exists()]
    if foreign:
        message = f"{folder} holds the files of another database ({foreign[0]}); give --data a folder of its own"
        raise ConfigurationFault(message)
    database = folder / "db"
    if database.is_dir() and any(database.iterdir()) and not (database / "secantus_collections.wt").exists():
        message = f"{database} is not a folder of the embedded database; give --data another folder"
        raise ConfigurationFault(message)
    if not create and not (database.is_dir() or (folder / "server.json").exists()):
        message = (
            f"no embedded database lives in {folder}: correct --data, or start one there with "
            f"`python -m worker run --embedded --data {data_dir}`"
        )
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
def lock(folder: Path) -> Generator[None]:
    """Hold the folder while a server is started or stopped; raises Unavailable when another one does so too long."""
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


def use(folder: Path) -> IO[str]:
    """Be counted among the users; the count ends with the file's closing, or with the process."""
    users = (folder / "server.users").open("a", encoding="ascii")
    fcntl.flock(users, fcntl.LOCK_SH)
    return users


def alone(users: IO[str]) -> bool:
    """Whether nobody else uses the server; then nobody can begin to while the folder is locked."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def cut(log: Path) -> None:
    """Keep only the end of a log that has grown past its limit."""
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        with log.open("rb") as file:
            file.seek(-_LOG_BYTES // 2, os.SEEK_END)
            end = file.read()
        log.write_bytes(end)


def last_line(log: Path) -> str:
    """The last line that the server printed, for an error."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:_LOG_LINE] if lines else "it printed nothing"
