"""Which process is which: a pid alone is reused, a pid with its start time is not.

Used by the lease (is the holder on this host gone?) and by the embedded database (is the recorded server that one?).
"""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_STAT_AFTER_NAME: Final = 2  # proc(5): fields 1 and 2 are pid and (name); the list after ")" starts with field 3, state
_STARTTIME: Final = 22 - _STAT_AFTER_NAME - 1
_GONE_STATES: Final = frozenset("ZXx")  # a zombie runs no more, though its pid is still taken
_PS_SECONDS: Final = 5.0


def start_mark(pid: int) -> str | None:
    """When this process started, as an opaque mark to compare, or None when it does not run.

    On Linux from /proc (clock ticks since boot), elsewhere from `ps`. Where neither can be read the mark is empty for a
    living process: it then equals only another unreadable mark.
    """
    if pid <= 0:
        return None
    if (_PROC / "self" / "stat").exists():
        return _mark_of_proc(pid)
    return _mark_of_ps(pid)


def same_process(pid: int, mark: str) -> bool:
    """Whether the process that had this pid and start mark still runs."""
    return start_mark(pid) == mark


def process_space() -> str:
    """Where pids mean what they mean here: host name, boot and pid namespace.

    Two containers on one kernel may share a host name and not see each other's processes; their spaces differ.
    """
    return f"{socket.gethostname()}/{_boot()}/{_namespace()}"


def _mark_of_proc(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] in _GONE_STATES:
        return None
    return fields[_STARTTIME]


def _mark_of_ps(pid: int) -> str | None:
    program = shutil.which("ps")
    if program is None:
        return "" if _exists(pid) else None
    shown = subprocess.run(  # noqa: S603  # a fixed program, the argument is a number
        [program, "-o", "stat=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        timeout=_PS_SECONDS,
        check=False,
    ).stdout.split(maxsplit=1)
    if not shown or shown[0][0] in _GONE_STATES:
        return None
    return shown[-1].strip()


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _boot() -> str:
    try:
        return (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str((_PROC / "self" / "ns" / "pid").readlink())
    except OSError:
        return ""
