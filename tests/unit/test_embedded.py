"""The embedded database: started, joined, adopted, stopped; and what goes wrong said plainly."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from worker.embedded import EmbeddedServer
from worker.embedded_record import read_record
from worker.errors import ConfigurationFault, Unavailable
from worker.mongo.ping import answers
from worker.process import same_process, start_mark


def reap(server: EmbeddedServer) -> None:
    """Take the exit code of a server that another handle stopped: it is still this process's child."""
    if server._child is not None:  # pyright: ignore[reportPrivateUsage]
        server._child.wait(5)  # pyright: ignore[reportPrivateUsage]


def test_it_starts_answers_is_joined_and_stops(tmp_path: Path) -> None:
    """One owner, any number of guests; a guest's close leaves the server alone."""
    owner = EmbeddedServer.start_or_join(tmp_path)
    try:
        assert owner.owned
        assert answers(owner.uri, 5)
        row = json.loads((tmp_path / "server.json").read_text())
        assert row["uri"] == owner.uri
        assert row["owner"] == os.getpid()
        guest = EmbeddedServer.start_or_join(tmp_path)
        assert (guest.uri, guest.owned) == (owner.uri, False)
        guest.close()
        assert EmbeddedServer.running(tmp_path) == owner.uri
    finally:
        owner.close()
    assert start_mark(owner.pid) is None
    assert not (tmp_path / "server.json").exists()
    assert EmbeddedServer.running(tmp_path) is None
    owner.close()


def test_without_create_it_must_be_there(tmp_path: Path) -> None:
    """A folder without a database is left as it is; one with a stopped or a running database is used."""
    with pytest.raises(ConfigurationFault, match="no embedded database lives in"):
        EmbeddedServer.start_or_join(tmp_path / "typo", create=False)
    assert list(tmp_path.iterdir()) == []
    EmbeddedServer.start_or_join(tmp_path / "data").close()
    again = EmbeddedServer.start_or_join(tmp_path / "data", create=False)
    try:
        guest = EmbeddedServer.start_or_join(tmp_path / "data", create=False)
        assert guest.uri == again.uri
        guest.close()
    finally:
        again.close()


def test_the_last_one_out_stops_it(tmp_path: Path) -> None:
    """An owner that leaves first does not stop it under its guest; the last guest does not leave it behind."""
    owner = EmbeddedServer.start_or_join(tmp_path)
    try:
        guest = EmbeddedServer.start_or_join(tmp_path)
        assert not guest.owned
    finally:
        owner.close()
    assert answers(guest.uri, 5)
    heir = EmbeddedServer.start_or_join(tmp_path)
    assert (heir.uri, heir.owned) == (guest.uri, True)
    heir.close()
    assert answers(guest.uri, 5)
    guest.close()
    reap(owner)
    assert start_mark(guest.pid) is None
    assert not (tmp_path / "server.json").exists()


def test_two_starters_share_one_server(tmp_path: Path) -> None:
    """Whoever comes second joins."""
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(EmbeddedServer.start_or_join, [tmp_path, tmp_path]))
    for server in both:
        server.close()
    for server in both:
        reap(server)
    assert both[0].uri == both[1].uri
    assert start_mark(both[0].pid) is None


def test_an_orphan_is_adopted(tmp_path: Path) -> None:
    """A server whose starter was killed is taken over by the next start, with its data, and stopped by it."""
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from worker.embedded import EmbeddedServer
        server = EmbeddedServer.start_or_join(Path(sys.argv[1]))
        print(server.pid, flush=True)
        time.sleep(60)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        starter.send_signal(signal.SIGKILL)
        starter.wait()
    heir = EmbeddedServer.start_or_join(tmp_path)
    try:
        assert heir.owned
        assert heir.pid == pid
        record = read_record(tmp_path)
        assert record is not None
        assert record.owner == os.getpid()
    finally:
        heir.close()
    assert start_mark(pid) is None


def _record_of(child: subprocess.Popen[bytes]) -> str:
    """A record of a server that runs and answers nobody."""
    row = {"uri": "mongodb://127.0.0.1:1/?replicaSet=secantus", "pid": child.pid, "started": start_mark(child.pid)}
    return json.dumps({**row, "owner": 0, "ownerStarted": ""})


def test_one_on_its_way_out_is_waited_for(tmp_path: Path) -> None:
    """A server that answers nobody any more and ends meanwhile (its owner was cut short): another one is started."""
    with subprocess.Popen(["sleep", "2"]) as leaving:
        (tmp_path / "server.json").write_text(_record_of(leaving))
        server = EmbeddedServer.start_or_join(tmp_path)
        try:
            assert leaving.wait(0) == 0
            assert server.owned
            assert server.pid != leaving.pid
            assert answers(server.uri, 5)
        finally:
            server.close()


def test_one_that_neither_answers_nor_ends_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody starts a second server beside it; a person is told which process that is, and it is left alone."""
    monkeypatch.setattr("worker.embedded._ANSWER_SECONDS", 0.5)
    with subprocess.Popen(["sleep", "60"]) as stuck:
        try:
            (tmp_path / "server.json").write_text(_record_of(stuck))
            with pytest.raises(Unavailable, match=f"pid {stuck.pid}"):
                EmbeddedServer.start_or_join(tmp_path)
            assert stuck.poll() is None
        finally:
            stuck.kill()


def test_a_stale_record_is_ignored(tmp_path: Path) -> None:
    """A record that names a pid which another process has now does not count."""
    (tmp_path / "server.json").write_text(
        json.dumps(
            {"uri": "mongodb://127.0.0.1:1/", "pid": os.getpid(), "started": "0", "owner": 1, "ownerStarted": "0"}
        )
    )
    server = EmbeddedServer.start_or_join(tmp_path)
    try:
        assert server.owned
        assert server.pid != os.getpid()
    finally:
        server.close()


def test_a_folder_of_another_database_is_refused(tmp_path: Path) -> None:
    """Nothing is written beside another database's files."""
    (tmp_path / "WiredTiger").touch()
    with pytest.raises(ConfigurationFault, match="another database"):
        EmbeddedServer.start_or_join(tmp_path)
    assert not (tmp_path / "server.lock").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A file in the way is a mistake of the configuration."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationFault, match="cannot be used"):
        EmbeddedServer.start_or_join(tmp_path / "file" / "data")


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the program the message says what to install."""
    monkeypatch.setattr("worker.embedded._PROGRAM", "no-such-program")
    with pytest.raises(ConfigurationFault, match="embedded"):
        EmbeddedServer.start_or_join(tmp_path)


def test_a_server_that_ends_at_once_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error ends with the last line of the log."""
    monkeypatch.setattr("worker.embedded._FLAGS", ("--no-such-flag",))
    with pytest.raises(Unavailable, match="no-such-flag"):
        EmbeddedServer.start_or_join(tmp_path)
    assert not (tmp_path / "server.json").exists()


def test_a_process_is_known_by_its_start() -> None:
    """A pid with another start mark is another process; a zombie is gone."""
    mark = start_mark(os.getpid())
    assert mark is not None
    assert same_process(os.getpid(), mark)
    assert not same_process(os.getpid(), "0")
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert start_mark(child.pid) is None
    child.stdout.close()
    child.wait()
