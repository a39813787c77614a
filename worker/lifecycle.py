"""Start and stop: signals, drain, the supervisor's watchdog, and what the death of a task means.

    first SIGTERM or SIGINT    drain: `requested` is set, what is in hand is finished, exit 0, in WORKER_DRAIN_SECONDS
    second one                 stop now: `now` is set; the process is gone a second later at the latest, exit 0
    SIGHUP                     logged and ignored: a closed terminal must not kill a worker by surprise

Under PM2 the signal is SIGINT, under systemd SIGTERM; both mean the same.
"""

import asyncio
import contextlib
import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Final, Self, cast

from brain.knowledge.log import log
from worker.clock import Clock
from worker.errors import EXIT_BUG, EXIT_OK, KnowledgeError, exit_code
from worker.observe.health import Heartbeat

DRAIN_SHARE: Final = 0.6
"""Of the stop's time, what the work in hand may take; the rest is for the last position, the driver, the server."""
CUT_SHARE: Final = 0.8
"""Of the stop's time, after how much whatever still runs is cut off."""
ABORT_SECONDS: Final = 1.0  # between "stop now" and the end of the process, whatever it is doing
BEAT_SECONDS: Final = 1.0

_logger = logging.getLogger(__name__)
_LAST_WORDS: Final = 0.2  # seconds that the log has to be written
_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
_HEARD: Final = (*_STOPPING, signal.SIGHUP)


class Stop:
    """The stop of this process, asked for by signals or `request`; a context manager inside the running event loop.

    `limit`: seconds after the first signal at which the process is gone, whatever still runs then, a thread or a close
    that does not end included.

    The interpreter's C code writes each signal's number into a pipe, and a thread of ours reads it: that works while
    the event loop is blocked too. Leaving the context restores the former handlers.
    """

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self.requested: Final = asyncio.Event()
        self.now: Final = asyncio.Event()
        self._former: dict[signal.Signals, object] = {}
        self._former_fd = -1
        self._read = self._write = -1
        self._thread: threading.Thread | None = None

    def request(self) -> None:
        """Ask for a drain; the second time, to stop now. Call it from the event loop."""
        (self.now if self.requested.is_set() else self.requested).set()

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._thread = threading.Thread(target=self._listen, args=(loop, self._read), name="signals", daemon=True)
        self._thread.start()
        for number in _HEARD:
            self._former[number] = signal.signal(number, _heard)
        self._former_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._former_fd)
        for number, handler in self._former.items():
            signal.signal(number, handler)  # pyright: ignore[reportArgumentType] - what signal.signal gave us
        self._former.clear()
        os.close(self._write)  # the thread reads the end, closes its side and ends
        if self._thread is not None:
            self._thread.join()

    def _listen(self, loop: asyncio.AbstractEventLoop, read: int) -> None:
        """Pass the signals on; after the second one, end the process when it does not end itself."""
        asked = 0
        guarded = self._limit is None
        while heard := os.read(read, 64):
            for number in (number for number in heard if number in _HEARD):
                asked += number in _STOPPING
                with contextlib.suppress(RuntimeError):  # the loop is closed: the end is near anyway
                    loop.call_soon_threadsafe(self._hear, number)
            if asked and not guarded:
                guarded = True
                _leave_after(self._limit or 0.0)
            if asked > 1:
                # Wake early when the context is left: closing the other side makes the pipe readable, with no bytes.
                ended, _, _ = select.select([read], [], [], ABORT_SECONDS)
                if not ended:
                    os._exit(EXIT_OK)  # asked for twice by a person: what was in hand is done again at the next start
        os.close(read)

    def _hear(self, number: int) -> None:
        name = signal.Signals(number).name
        if number not in _STOPPING:
            log(_logger, logging.INFO, "signal_ignored", f"{name} does not stop the worker", signal=name)
            return
        self.request()
        if self.now.is_set():
            log(_logger, logging.WARNING, "stop_now", f"{name} again: stopping without a drain", signal=name)
        else:
            log(_logger, logging.INFO, "stop_requested", f"{name}: finishing what is in hand", signal=name)


def _leave_after(seconds: float) -> None:
    """End the process then, unless it has ended: what was in hand is done again at the next start."""

    def leave() -> None:
        words = f"the stop took longer than {seconds:g} s; the process ends without waiting for what still runs"
        log(_logger, logging.WARNING, "stop_cut", words)
        time.sleep(_LAST_WORDS)
        os._exit(EXIT_OK)

    guard = threading.Timer(max(0.0, seconds - _LAST_WORDS), leave)
    guard.daemon = True  # it must not keep alive what ends by itself
    guard.start()


def _heard(number: int, frame: object) -> None:
    """Nothing: a Python-level handler must exist for the number to be written to the pipe."""


class Notifier:
    """Tells systemd through NOTIFY_SOCKET (man sd_notify); without one, every call does nothing.

    `watchdog` is the time in seconds within which `alive` must come, or None.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        mine = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        micros = environ.get("WATCHDOG_USEC", "")
        self.watchdog: Final = int(micros) / 1_000_000 if mine and micros.isdecimal() and int(micros) else None

    def ready(self) -> None:
        """The start is done."""
        self._send("READY=1")

    def stopping(self) -> None:
        """The stop has begun."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """The watchdog's ping."""
        self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address.startswith(("/", "@")):
            return
        # A leading @ names an abstract socket, whose name begins with a zero byte.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)  # noqa: FBT003 - the standard library's signature
            with contextlib.suppress(OSError):  # a supervisor that does not listen is no reason to stop
                sender.sendto(message.encode(), address)


async def beat(heartbeat: Heartbeat, notifier: Notifier, healthy: Callable[[], bool], clock: Clock) -> None:
    """Beat for /healthz and ping the watchdog, for ever; no ping while `healthy` says that only a restart helps."""
    interval = BEAT_SECONDS if notifier.watchdog is None else min(BEAT_SECONDS, notifier.watchdog / 3)
    was = True
    while True:
        heartbeat.beat()
        now = healthy()
        if now:
            notifier.alive()
        elif was:
            log(_logger, logging.ERROR, "pipeline_stuck", "nothing moves though work waits: no more watchdog pings")
        was = now
        await clock.sleep(interval)


async def supervise(
    main: Coroutine[object, object, None],
    background: Mapping[str, Coroutine[object, object, None]],
    stop: Stop,
    drain_seconds: float,
) -> int:
    """Run the main task, which ends when it has drained, beside its background tasks; the exit code of the process.

    A background task runs until it is cancelled: one that ends earlier, for whatever reason, takes the worker with it,
    because there is no half a worker. After `stop.requested` the main task has `drain_seconds`; after
    `stop.now`, nothing. Both are exit code 0: what is cut off is done again at the next start. Errors decide by their
    place in the tree: see `code_of`.
    """
    leading = asyncio.create_task(main, name="main")
    others = [asyncio.create_task(work, name=name) for name, work in background.items()]
    limit = asyncio.create_task(_limit(stop, drain_seconds), name="stop")
    every = {leading, *others, limit}
    try:
        done, _ = await asyncio.wait(every, return_when=asyncio.FIRST_COMPLETED)
        await _cancel(every - done)
    except asyncio.CancelledError:
        await _cancel(every)
        raise
    died = set(others) & done if leading not in done else set[asyncio.Task[None]]()
    codes = [_verdict(task, died=task in died) for task in (leading, *others, limit) if task.done()]
    return EXIT_BUG if EXIT_BUG in codes else max(codes, default=EXIT_OK)


def code_of(error: BaseException) -> int:
    """FencedOff and what may succeed later: 75; what a person must mend: 78; a bug or a code nobody foresaw: 70.

    Of a group, a bug counts most, then the highest code.
    """
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        codes = {code_of(one) for one in inner}
        return EXIT_BUG if EXIT_BUG in codes else max(codes)
    return exit_code(error) if isinstance(error, KnowledgeError) else EXIT_BUG


async def _limit(stop: Stop, drain_seconds: float) -> None:
    """Return when the stop has had its time."""
    await stop.requested.wait()
    try:
        async with asyncio.timeout(drain_seconds):
            await stop.now.wait()
    except TimeoutError:
        log(_logger, logging.WARNING, "drain_cut", f"the drain took longer than {drain_seconds:g} s and was cut off")


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel the tasks and wait, but not for ever, until they are done."""
    for task in tasks:
        task.cancel()
    if tasks:
        _, stuck = await asyncio.wait(tasks, timeout=ABORT_SECONDS)
        for task in stuck:
            log(_logger, logging.ERROR, "task_ignores_cancel", f"{task.get_name()} does not end", task=task.get_name())


def _verdict(task: asyncio.Task[None], *, died: bool) -> int:
    """The exit code that an ended task asks for; its death is logged. `died`: it ended before anybody asked it to."""
    name = task.get_name()
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _mourn(name, error)
        return code_of(error)
    if died:
        log(_logger, logging.CRITICAL, "task_ended", f"{name} ended, and the worker with it", task=name)
        return EXIT_BUG
    return EXIT_OK


def _mourn(name: str, error: BaseException) -> None:
    """Log what ended a task: what was foreseen in its own words, a bug with its traceback."""
    leaves = list(leaves_of(error))
    for leaf in leaves:
        if isinstance(leaf, KnowledgeError):
            kind = type(leaf).__name__
            log(_logger, logging.CRITICAL, "ended", f"{kind}: {leaf}", task=name, kind=kind)
    if not all(isinstance(leaf, KnowledgeError) for leaf in leaves):
        log(_logger, logging.CRITICAL, "task_died", f"{name} died, and the worker with it", task=name, error=error)


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, however deep; of anything else, that error alone."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from leaves_of(inner)
    else:
        yield error
