"""Logs: JSON lines for a supervisor, short coloured lines for a person at a terminal; never in the event loop's way.

A record is formatted where it is made and put into a bounded queue; one thread writes. When nobody reads stderr the
queue fills and further lines are dropped and counted, while the program goes on.

Every line has `ts` (UTC), `level`, `action` (a stable machine word to alert on), `message`, `logger` and the fields.
"""

import contextlib
import json
import logging
import math
import os
import queue
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self, cast

from brain.knowledge.redact import Redactor

QUEUE_LINES: Final = 2_000
LONGEST_TEXT: Final = 2_000  # characters of one field
LONGEST_STACK: Final = LONGEST_TEXT - 100  # characters of a stack: as a field it is not cut again, at its end
LONGEST_ERROR: Final = 8_000  # characters of a traceback
MOST_FIELDS: Final = 32
STOP_SECONDS: Final = 1.0  # how long a stop waits for the last lines

_CHATTY: Final = ("httpx", "httpx2", "httpcore", "httpcore2", "pymongo", "motor", "asyncio")
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_OWN: Final = frozenset({"ts", "level", "action", "message", "logger", "error"})
_COLOURS: Final = {"DEBUG": "2", "INFO": "36", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}

Scalar = str | int | float | bool | None


def log(logger: logging.Logger, level: int, action: str, message: str, /, **fields: object) -> None:
    """Log with a machine word and fields; an exception goes into `error=…` and is shown with its traceback."""
    if logger.isEnabledFor(level):
        error = fields.pop("error", None)
        exc_info = error if isinstance(error, BaseException) else None
        if exc_info is None and error is not None:
            fields["error_"] = error
        # `%` in the message is text, not a place for arguments: there are none.
        logger.log(level, "%s", message, exc_info=exc_info, extra={"action": action, "fields": fields})


def stack_of(error: BaseException) -> str:
    """Where an exception was raised, as one field: its frames without its message, which may quote a document.

    The end is kept, since it says where it happened.
    """
    return "".join(traceback.format_tb(error.__traceback__))[-LONGEST_STACK:]


def _scalar(name: str, value: object, redact: Redactor) -> Scalar:
    """A field's value as JSON holds it, masked and of bounded length."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    return _cut(redact.field(name, value if isinstance(value, str) else str(value)), LONGEST_TEXT)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def _fields(record: logging.LogRecord, redact: Redactor) -> dict[str, Scalar]:
    """What was passed as `extra`, in either form, under names that are free."""
    held: dict[str, object] = {
        name: value for name, value in vars(record).items() if name not in _STANDARD and name != "action"
    }
    packed = held.pop("fields", None)
    if isinstance(packed, Mapping):
        held |= cast("Mapping[str, object]", packed)
    named = ((f"{name}_" if name in _OWN else name, value) for name, value in list(held.items())[:MOST_FIELDS])
    return {name[:100]: _scalar(name, value, redact) for name, value in named}


def _error(record: logging.LogRecord, redact: Redactor) -> str | None:
    """The traceback without values of locals, its end kept when it is long: the end says what happened."""
    if not record.exc_info or record.exc_info[1] is None:
        return None
    text = "".join(traceback.format_exception(record.exc_info[1]))
    return redact(text if len(text) <= LONGEST_ERROR else f"…{text[-LONGEST_ERROR:]}").rstrip()


class JsonFormatter(logging.Formatter):
    """One JSON object a line, in ASCII: newlines and escape sequences cannot break out of it."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its newline."""
        line: dict[str, Scalar] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "action": str(getattr(record, "action", "log")),
            "message": _cut(self._redact(record.getMessage()), LONGEST_TEXT),
            "logger": record.name,
        }
        line |= _fields(record, self._redact)
        error = _error(record, self._redact)
        if error is not None:
            line["error"] = error
        return json.dumps(line, ensure_ascii=True, allow_nan=False)


class PersonFormatter(logging.Formatter):
    """`12:03:04 INFO    message  key=value`, coloured; what is not printable is shown escaped."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """The line (and a traceback below it, if any), without its newline."""
        when = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        colour = _COLOURS.get(record.levelname, "0")
        message = _printable(_cut(self._redact(record.getMessage()), LONGEST_TEXT))
        fields = _fields(record, self._redact)
        tail = "".join(f"  \x1b[2m{_printable(name)}=\x1b[0m{_printable(str(value))}" for name, value in fields.items())
        error = _error(record, self._redact)
        below = "".join(f"\n  {_printable(line)}" for line in error.splitlines()) if error is not None else ""
        return f"\x1b[2m{when}\x1b[0m \x1b[{colour}m{record.levelname:<7}\x1b[0m {message}{tail}{below}"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


class LogPipe(logging.Handler):
    """The root's only handler: formats, queues, and lets one thread write to a file descriptor.

    `dropped` counts lines that were not written. The descriptor is a copy, so that closing stderr elsewhere cannot lead
    our lines into another file; it is written to directly, because a thread that waits inside the interpreter's own
    stderr buffer would abort the process at its end.
    """

    def __init__(self, fd: int, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.dropped = 0
        self._fd = os.dup(fd)
        self._queue: queue.Queue[bytes | None] = queue.Queue(QUEUE_LINES)
        self._thread = threading.Thread(target=self._write_all, name="log-writer", daemon=True)
        self._former: tuple[list[logging.Handler], int, dict[str, int]] | None = None
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record; never waits."""
        try:
            line = self.format(record).encode("utf-8", "backslashreplace") + b"\n"
        except (TypeError, ValueError, KeyError, AttributeError, RuntimeError):  # a library's wrong arguments
            self.handleError(record)
            return
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """A record that cannot be formatted is a lost line, not a reason to print elsewhere."""
        del record
        self.dropped += 1

    def _write_all(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                while line:
                    line = line[os.write(self._fd, line) :]
            except OSError:  # closed pipe, full disk: nobody can be told here; the metric tells
                self.dropped += 1
        os.close(self._fd)

    def install(self, level: int | str) -> Self:
        """Become the root's only handler; `stop` puts the former state back."""
        root = logging.getLogger()
        levels = {name: logging.getLogger(name).level for name in _CHATTY}
        self._former = (root.handlers[:], root.level, levels)
        root.handlers[:] = [self]
        root.setLevel(level)
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)
        return self

    def stop(self) -> None:
        """Write what is queued, waiting at most `STOP_SECONDS`, and give the root back. Idempotent."""
        if self._former is not None:
            handlers, level, levels = self._former
            root = logging.getLogger()
            root.handlers[:] = handlers
            root.setLevel(level)
            for name, former in levels.items():
                logging.getLogger(name).setLevel(former)
            self._former = None
        with contextlib.suppress(queue.Full):  # full and nobody reads: the thread is stuck and ends with the process
            self._queue.put(None, timeout=STOP_SECONDS)
        self._thread.join(STOP_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def configure(
    level: int | str = "INFO", *, secrets: Iterable[str] = (), fd: int | None = None, colour: bool | None = None
) -> LogPipe:
    """Send all logs of the process to stderr (or `fd`): for people when that is a terminal, else as JSON lines.

    The caller stops the pipe at the end (it is a context manager), or the last lines may be lost.
    """
    target = sys.stderr.fileno() if fd is None else fd
    redact = Redactor(secrets)
    people = os.isatty(target) if colour is None else colour
    return LogPipe(target, PersonFormatter(redact) if people else JsonFormatter(redact)).install(level)
