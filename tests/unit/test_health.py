"""Readiness by the rules that `worker.observe.health` draws."""

import logging
import math
from datetime import UTC, datetime

import pytest

from worker.observe.health import HealthBoard, Heartbeat
from worker.ports import Health


class HandClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.at = 1000.0

    def now(self) -> datetime:
        """The wall time."""
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        """The hand's position."""
        return self.at

    async def sleep(self, seconds: float) -> None:
        """Move the hand."""
        self.at += seconds


def leader() -> tuple[HealthBoard, HandClock]:
    """A board of a leader that has just moved."""
    clock = HandClock()
    board = HealthBoard(clock)
    board.role("leader")
    board.stream_moved()
    return board, clock


def test_it_is_the_port() -> None:
    """The board has the shape that the pipeline was promised."""
    port: Health = HealthBoard(HandClock())
    port.stream_moved()


def test_starting_is_not_ready() -> None:
    """Before the lease is asked for, nothing is ready, and what pauses it is said."""
    board = HealthBoard(HandClock())
    board.pause("database", "no answer")
    answer = board.snapshot()
    assert (answer.ready, answer.role) == (False, "starting")
    assert answer.reasons == ("the worker is starting", "paused (database): no answer")


def test_standby_is_ready_however_old() -> None:
    """A standby waits, and that is its work."""
    clock = HandClock()
    board = HealthBoard(clock)
    board.role("standby")
    clock.at += 1000
    assert board.snapshot().as_row() == {"ready": True, "role": "standby", "reasons": []}
    assert math.isnan(board.watermark_age())
    assert not board.leads()


def test_a_moving_leader_is_ready() -> None:
    """A leader that moves, owes nothing and pauses nothing is ready."""
    board, clock = leader()
    for _ in range(100):
        clock.at += 1
        board.stream_moved()
        board.watermark(None)
        assert board.snapshot().ready
        assert board.watermark_age() == 0
    assert board.leads()


def test_a_silent_stream_unreadies_at_ten_seconds() -> None:
    """9.9 s are fine, 10 s are not, and a move mends it."""
    board, clock = leader()
    clock.at += 9.9
    assert board.snapshot().ready
    clock.at += 0.1
    assert board.snapshot().reasons == ("the change stream has not moved for 10 s (limit 10 s)",)
    assert math.isclose(board.watermark_age(), 10)
    board.stream_moved()
    assert board.snapshot().ready


def test_an_old_watermark_unreadies_at_thirty_seconds() -> None:
    """A change may wait up to 30 s."""
    board, clock = leader()
    board.watermark(clock.at)
    for _ in range(29):
        clock.at += 1
        board.stream_moved()
    assert board.snapshot().ready
    clock.at += 1
    assert board.snapshot().reasons == ("a change has waited 30 s for its outcome (limit 30 s)",)
    assert board.watermark_age() == 30
    board.watermark(None)
    assert board.snapshot().ready


def test_first_scans_unready() -> None:
    """Until every source was scanned once, the leader is not ready and names them."""
    board, _ = leader()
    board.scans_pending(["spots", "docs"])
    assert board.snapshot().reasons == ("the first scan is not done: spots, docs",)
    board.scans_pending([])
    assert board.snapshot().ready


def test_pauses_add_up_and_end_one_by_one() -> None:
    """The same reason twice is one pause with the newer text; each is ended by its own resume; others are ignored."""
    board, _ = leader()
    board.pause("embedding", "429")
    board.pause("embedding", "503")
    board.pause("stream", "no primary")
    assert board.snapshot().reasons == ("paused (embedding): 503", "paused (stream): no primary")
    board.resume("embedding")
    board.resume("never")
    assert not board.snapshot().ready
    board.resume("stream")
    assert board.snapshot().ready


def test_details_are_masked_and_bounded() -> None:
    """A pause's text goes through the redactor and is cut."""
    board = HealthBoard(HandClock(), lambda text: text.replace("canary", "***"))
    board.role("leader")
    board.stream_moved()
    board.pause("stream", "canary" + "x" * 1000)
    (reason,) = board.snapshot().reasons
    assert "canary" not in reason
    assert len(reason) < 400


def test_a_new_leader_has_time_for_its_first_move() -> None:
    """Time spent as standby does not count against the new leader."""
    clock = HandClock()
    board = HealthBoard(clock)
    board.role("standby")
    clock.at += 500
    board.role("leader")
    assert board.moving()
    board.stream_moved()
    assert board.snapshot().ready


def test_a_new_leader_is_not_ready_before_the_streams_first_answer() -> None:
    """Until then nobody knows how far the stored position is behind: with a backlog of a minute it is never ready."""
    board = HealthBoard(HandClock())
    board.role("standby")
    board.role("leader")
    assert board.snapshot().reasons == ("the change stream has not answered yet (0 s)",)
    board.stream_moved(60.0)
    assert board.snapshot().reasons == ("the change stream is 60 s behind (limit 30 s)",)
    board.stream_moved(5.0)
    assert board.snapshot().ready
    board.role("standby")
    board.role("leader")
    assert not board.snapshot().ready


def test_only_a_stuck_leader_is_to_be_restarted() -> None:
    """The watchdog starves only when nothing moves, though the stream should or work waits, and no pause says why."""
    board, clock = leader()
    clock.at += 59
    assert board.moving()
    clock.at += 1
    assert not board.moving()
    board.pause("stream", "outage")
    assert board.moving()
    board.resume("stream")
    board.stream_moved()
    board.watermark(clock.at - 500)
    assert board.moving()
    for _ in range(60):
        clock.at += 1
        board.stream_moved()
    assert not board.moving()
    board.watermark(clock.at - 400)
    assert board.moving()


def test_a_long_document_that_comes_on_is_not_stuck() -> None:
    """Minutes of embedding for one document are work: a watchdog's restart would throw it away and begin again."""
    board, clock = leader()
    board.watermark(clock.at)
    for _ in range(300):
        clock.at += 1
        board.stream_moved()
        if clock.at % 30 == 0:
            board.advanced()
        assert board.moving()


def test_readiness_is_told_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    """Once each way, with the reasons."""
    board, clock = leader()
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            board.tell()
        board.watermark(clock.at - 31)
        for _ in range(3):
            board.tell()
        board.watermark(None)
        board.tell()
    said = [record.getMessage() for record in caplog.records]
    late = "not ready: a change has waited 31 s for its outcome (limit 30 s)"
    assert said == ["ready, as leader", late, "ready, as leader"]


def test_an_idle_leader_moves() -> None:
    """Nothing waits and the stream answers: that is health, not a standstill."""
    board, clock = leader()
    for _ in range(300):
        clock.at += 1
        board.stream_moved()
        board.watermark(None)
    assert board.moving()


def test_a_heartbeat_ages() -> None:
    """Silence grows until the next beat."""
    clock = HandClock()
    heartbeat = Heartbeat(clock)
    clock.at += 7
    assert heartbeat.silence() == 7
    heartbeat.beat()
    assert heartbeat.silence() == 0
