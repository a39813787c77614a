"""The status server with real sockets: right answers, and no client that can keep a scraper out (K10)."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from worker.clock import SystemClock
from worker.errors import ConfigurationFault
from worker.observe.health import HealthBoard, Heartbeat
from worker.observe.http import CONNECTION_SECONDS, LONGEST_HEAD, MOST_CONNECTIONS, StatusServer
from worker.observe.metrics import PrometheusMeter
from worker.observe.pages import StatusPages

HOST = "127.0.0.1"


class AgingClock(SystemClock):
    """The machine's clock, set forward by `ahead` seconds."""

    ahead = 0.0

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return super().monotonic() + self.ahead


@dataclass
class Rig:
    """A running server and what it reads."""

    clock: AgingClock
    meter: PrometheusMeter
    board: HealthBoard
    pages: StatusPages
    server: StatusServer

    def ask(self, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body of one request."""
        status, body, _ = self.ask_all(path, method, headers)
        return status, body

    def ask_all(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of one request."""
        connection = http.client.HTTPConnection(HOST, self.server.port, timeout=10)
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read(), dict(response.getheaders())
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """A bare connection."""
        return socket.create_connection((HOST, self.server.port), timeout=10)


@pytest.fixture
def rig() -> Iterator[Rig]:
    """A server on a free port of the loopback."""
    clock = AgingClock()
    meter = PrometheusMeter(["spots", "docs"])
    board = HealthBoard(clock)
    pages = StatusPages(meter, board, Heartbeat(clock))
    with StatusServer(pages, HOST, 0) as server:
        assert server.port != 0
        yield Rig(clock, meter, board, pages, server)


def test_metrics(rig: Rig) -> None:
    """Prometheus gets its text format."""
    rig.meter.received("spots")
    status, body, headers = rig.ask_all("/metrics?x=1")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'freshness_events_total{outcome="received",source="spots"} 1.0' in body


def test_readyz(rig: Rig) -> None:
    """503 with reasons, then 200 without, in the shape of the contract."""
    status, body = rig.ask("/readyz")
    assert status == 503
    assert json.loads(body) == {"ready": False, "role": "starting", "reasons": ["the worker is starting"]}
    rig.board.role("leader")
    rig.board.stream_moved()
    status, body = rig.ask("/readyz")
    assert (status, json.loads(body)) == (200, {"ready": True, "role": "leader", "reasons": []})


def test_healthz_follows_the_event_loop(rig: Rig) -> None:
    """Alive while the loop beats; 503 after 60 s without a beat."""
    assert rig.ask("/healthz") == (200, b"alive\n")
    rig.clock.ahead = 61
    status, body = rig.ask("/healthz")
    assert status == 503
    assert b"61 s" in body


def test_the_page_for_people(rig: Rig) -> None:
    """Role, readiness and counts, refreshed by itself, with nothing loaded from elsewhere; what is shown is escaped."""
    rig.board.pause("stream", "<script>alert(1)</script>")
    rig.board.role("leader")
    rig.meter.received("spots")
    rig.meter.settled("spots", "applied", 0.25)
    status, body, headers = rig.ask_all("/")
    page = body.decode()
    assert status == 200
    assert "leader" in page
    assert "not ready" in page
    assert "<tr><th>spots<td>1<td>1" in page
    assert "0.25 s" in page
    assert 'http-equiv="refresh"' in page
    assert "<script>" not in page
    assert "src=" not in page
    assert "//" not in page.replace("http-equiv", "")
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_head_unknown_paths_and_other_methods(rig: Rig) -> None:
    """HEAD has the headers alone; what is not there is 404; what changes things is 405."""
    status, body, headers = rig.ask_all("/metrics", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 1000
    assert rig.ask("/favicon.ico")[0] == 404
    assert rig.ask("/../etc/passwd")[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
        status, _, headers = rig.ask_all("/metrics", method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_a_long_head_is_refused(rig: Rig) -> None:
    """A head beyond the limit gets 431 and no memory."""
    assert rig.ask("/metrics", headers={"X": "y" * LONGEST_HEAD})[0] == 431
    assert rig.ask("/healthz")[0] == 200


@pytest.mark.parametrize(
    "noise", [b"\r\n\r\n", b"\x00\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b""]
)
def test_noise_harms_nobody(rig: Rig, noise: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """What is not HTTP ends its own connection, quietly."""
    with rig.connect() as connection:
        connection.sendall(noise)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    assert rig.ask("/healthz")[0] == 200
    assert capfd.readouterr().err == ""


def test_clients_that_do_nothing_keep_nobody_out(rig: Rig) -> None:
    """Far more silent connections than are allowed, and a scraper gets its answer before the time of any is over."""
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS * 4):
            connection = stack.enter_context(rig.connect())
            connection.sendall(b"GET /metr")
        began = time.monotonic()
        assert rig.ask("/readyz")[0] == 503
        assert time.monotonic() - began < CONNECTION_SECONDS


def test_a_dripping_client_is_ended(rig: Rig) -> None:
    """One byte now and then does not keep a connection beyond its time."""
    began = time.monotonic()
    with rig.connect() as connection:
        connection.settimeout(0.2)
        while True:
            try:
                connection.sendall(b"G")
                if not connection.recv(1):
                    break
            except TimeoutError:
                assert time.monotonic() - began < CONNECTION_SECONDS * 3
            except OSError:
                break
    assert CONNECTION_SECONDS * 0.8 < time.monotonic() - began < CONNECTION_SECONDS * 3


def test_a_scraper_that_does_not_read_is_ended(rig: Rig) -> None:
    """Asking and never reading holds nothing: the server stays quick and stops at once."""
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            connection = stack.enter_context(rig.connect())
            connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert rig.ask("/healthz")[0] == 200
        began = time.monotonic()
        rig.server.stop()
        assert time.monotonic() - began < CONNECTION_SECONDS


def test_a_flood_is_answered(rig: Rig) -> None:
    """Hundreds of scrapes one after the other are all served."""
    assert {rig.ask("/metrics")[0] for _ in range(200)} == {200}


def test_a_taken_port_is_a_configuration_fault(rig: Rig) -> None:
    """The sentence names the port, the variable and what to do."""
    with pytest.raises(ConfigurationFault) as caught:
        StatusServer(rig.pages, HOST, rig.server.port).start()
    assert str(rig.server.port) in str(caught.value)
    assert "WORKER_METRICS_PORT" in str(caught.value)


def test_a_foreign_host_is_a_configuration_fault(rig: Rig) -> None:
    """An address that this machine does not have is told by the variable's name."""
    with pytest.raises(ConfigurationFault, match="WORKER_METRICS_HOST"):
        StatusServer(rig.pages, "192.0.2.1", 0).start()


def test_stop_is_idempotent_and_frees_the_port(rig: Rig) -> None:
    """After a stop nothing listens, and another server may have the port."""
    port = rig.server.port
    rig.server.stop()
    rig.server.stop()
    with pytest.raises(ConnectionRefusedError):
        rig.ask("/healthz")
    with StatusServer(rig.pages, HOST, port) as again:
        assert again.port == port
