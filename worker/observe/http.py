"""The status server: real HTTP in its own threads, so that no scraper can slow the event loop down.

Every connection carries one request and has `CONNECTION_SECONDS` in all, whatever it sends or reads meanwhile. At most
`MOST_CONNECTIONS` are open: a new one ends the oldest, so that clients which do nothing cannot keep a scraper out.
"""

import errno
import http.server
import io
import logging
import socket
import socketserver
import sys
import threading
import time
from types import TracebackType
from typing import Final, Self, cast

from worker.errors import ConfigurationFault
from worker.observe.pages import Page, StatusPages

CONNECTION_SECONDS: Final = 5.0
MOST_CONNECTIONS: Final = 16
LONGEST_HEAD: Final = 16_384  # bytes of request line and headers together
POLL_SECONDS: Final = 0.25  # how often overdue connections are looked for; also how long a stop takes

_logger = logging.getLogger(__name__)


class StatusServer:
    """Serves the pages on a host and a port from `start` to `stop`; `port` is the real one (0 asks for a free one)."""

    def __init__(self, pages: StatusPages, host: str, port: int) -> None:
        self._pages = pages
        self._host = host
        self._asked = port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._asked if self._server is None else int(self._server.server_address[1])

    def start(self) -> Self:
        """Listen. Raises ConfigurationFault when the host or the port cannot be had."""
        try:
            found = socket.getaddrinfo(self._host, self._asked, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, address = found[0][0], found[0][4]
            self._server = _Server(family, (str(address[0]), self._asked), self._pages)
        except socket.gaierror:
            message = "WORKER_METRICS_HOST is no address of this machine: set it to 127.0.0.1, or to one that it has."
            raise ConfigurationFault(message) from None
        except OSError as error:
            raise ConfigurationFault(self._cannot_listen(error)) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_SECONDS,), name="status-server", daemon=True
        )
        self._thread.start()
        return self

    def _cannot_listen(self, error: OSError) -> str:
        if isinstance(error, PermissionError):
            why, remedy = "needs privileges", "choose one above 1023"
        elif error.errno == errno.EADDRINUSE:
            why, remedy = "is taken by another process (a second worker?)", "stop that one, or choose another port"
        else:
            why, remedy = f"cannot be had ({error.strerror})", "correct it, or WORKER_METRICS_HOST"
        return f"WORKER_METRICS_PORT: port {self._asked} on {self._host} {why}: {remedy}."

    def stop(self) -> None:
        """Stop listening and end every connection. Idempotent."""
        server, self._server = self._server, None
        if server is None:
            return
        self._asked = int(server.server_address[1])
        server.shutdown()
        server.end_connections()
        server.server_close()
        if self._thread is not None:
            self._thread.join(CONNECTION_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Threads with a limit on their number and on the life of each connection."""

    daemon_threads = True
    block_on_close = False  # the threads end because their sockets are shut down
    request_queue_size = 64
    allow_reuse_port = False  # newer Pythons turn it on, and then a second worker would share the port unnoticed

    def __init__(self, family: int, address: tuple[str, int], pages: StatusPages) -> None:
        self.address_family = family
        self.pages: Final = pages
        self._lock = threading.Lock()
        self._began: dict[socket.socket, float] = {}  # in order of arrival
        self._slots = threading.BoundedSemaphore(2 * MOST_CONNECTIONS)  # threads, those that are just ending included
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Without HTTPServer's look-up of the machine's name, which may wait for DNS."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: object, client_address: object) -> None:
        """Hand a connection to a thread, ending the oldest one when there are too many; never waits."""
        connection = cast("socket.socket", request)
        with self._lock:
            if len(self._began) >= MOST_CONNECTIONS:
                _end(self._began, next(iter(self._began)))
            if not self._slots.acquire(blocking=False):
                self.shutdown_request(connection)
                return
            self._began[connection] = time.monotonic()
        super().process_request(connection, client_address)  # pyright: ignore[reportArgumentType] - typeshed's alias is narrower

    def process_request_thread(self, request: object, client_address: object) -> None:
        connection = cast("socket.socket", request)
        try:
            super().process_request_thread(connection, client_address)  # pyright: ignore[reportArgumentType]
        finally:
            with self._lock:
                self._began.pop(connection, None)
            self._slots.release()

    def service_actions(self) -> None:
        """End overdue connections; called by the accepting thread between connections and at least each poll."""
        overdue = time.monotonic() - CONNECTION_SECONDS
        with self._lock:
            for connection in [held for held, began in self._began.items() if began < overdue]:
                _end(self._began, connection)

    def end_connections(self) -> None:
        """End them all."""
        with self._lock:
            for connection in list(self._began):
                _end(self._began, connection)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is nothing; anything else is a bug to be seen in the log, not on raw stderr."""
        del request, client_address
        error = sys.exc_info()[1]
        if not isinstance(error, OSError | ValueError):
            _logger.error("a status page failed", exc_info=error, extra={"action": "status_page_failed"})


def _end(began: dict[socket.socket, float], connection: socket.socket) -> None:
    """Wake the connection's thread, which then closes it; the caller holds the lock."""
    del began[connection]
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it is closed already
        return


class _Head(io.RawIOBase):
    """The request's lines up to `LONGEST_HEAD` bytes; then nothing more comes, and `spent` says so."""

    def __init__(self, inner: io.BufferedIOBase) -> None:
        super().__init__()
        self._inner = inner
        self._left = LONGEST_HEAD

    @property
    def spent(self) -> bool:
        return self._left <= 0

    def readline(self, size: int | None = -1, /) -> bytes:
        if self._left <= 0:
            return b""
        most = self._left if size is None or size < 0 else min(size, self._left)
        line = self._inner.readline(most)
        self._left -= len(line)
        return line

    def close(self) -> None:
        self._inner.close()
        super().close()


class _Handler(http.server.BaseHTTPRequestHandler):
    """GET and HEAD; one request a connection; bodies of requests are never read."""

    protocol_version = "HTTP/1.1"
    timeout = CONNECTION_SECONDS
    server_version = "trickbook-worker"
    sys_version = ""
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def setup(self) -> None:
        super().setup()
        self._head = _Head(self.rfile)
        self.rfile = cast("io.BufferedReader", self._head)

    def do_GET(self) -> None:
        """Answer with the page."""
        self._answer()

    def do_HEAD(self) -> None:
        """Answer with the page's headers."""
        self._answer()

    def parse_request(self) -> bool:
        if not super().parse_request():
            return False
        if self.command in {"GET", "HEAD"}:
            return True
        self._send(Page(405, "text/plain; charset=utf-8", b"only GET and HEAD\n"), {"Allow": "GET, HEAD"})
        return False

    def _answer(self) -> None:
        if self._head.spent:
            self._send(Page(431, "text/plain; charset=utf-8", b"the request's head is too long\n"), {})
            return
        self._send(self.server.pages.answer(self.path.partition("?")[0]), {})

    def _send(self, page: Page, headers: dict[str, str]) -> None:
        self.close_connection = True
        self.send_response(page.status)
        fixed = {
            "Content-Type": page.content_type,
            "Content-Length": str(len(page.body)),
            "Cache-Control": "no-store",
            "Connection": "close",
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
            "X-Content-Type-Options": "nosniff",
        }
        for name, text in (fixed | headers).items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(page.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        """Scrapes are not worth a line."""
