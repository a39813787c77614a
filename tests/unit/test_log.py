"""Logs: one parseable line a record, no secret, and never in the way (K9)."""

import json
import logging
import os
import re
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brain.knowledge.log import QUEUE_LINES, JsonFormatter, LogPipe, PersonFormatter, configure, log
from brain.knowledge.redact import MASK, Redactor

SECRETS = ("Canary/Pass1", "sk-or-v1-canarykey2")
logger = logging.getLogger("worker.test")


def record(message: str, /, **fields: object) -> logging.LogRecord:
    """A record as `log` makes it."""
    extra = {"action": "tested", "fields": fields}
    return logger.makeRecord(logger.name, logging.INFO, "", 0, "%s", (message,), None, extra=extra)


def line(message: str, /, **fields: object) -> dict[str, object]:
    """A record as a JSON line, parsed."""
    text = JsonFormatter(Redactor(SECRETS)).format(record(message, **fields))
    assert "\n" not in text
    return json.loads(text)


@contextmanager
def pipe_into(path: Path, *, colour: bool = False) -> Generator[LogPipe]:
    """All logs of the process in a file."""
    with path.open("wb") as file, configure("DEBUG", secrets=SECRETS, fd=file.fileno(), colour=colour) as pipe:
        yield pipe


def test_a_line_has_its_parts(tmp_path: Path) -> None:
    """Time, level, machine word, message, logger and the fields under their names."""
    with pipe_into(tmp_path / "log"):
        log(logger, logging.WARNING, "stream_reopened", "again: 100%", attempt=3, source="spots", ratio=0.5, gone=None)
    row = json.loads((tmp_path / "log").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row.pop("ts"))
    assert row == {
        "level": "warning",
        "action": "stream_reopened",
        "message": "again: 100%",
        "logger": "worker.test",
        "attempt": 3,
        "source": "spots",
        "ratio": 0.5,
        "gone": None,
    }


def test_other_peoples_records_are_lines_too(tmp_path: Path) -> None:
    """A library's record with arguments and plain extras is a line; chatty libraries are heard from WARNING on."""
    with pipe_into(tmp_path / "log"):
        logging.getLogger("some.library").info("took %d ms", 5, extra={"host": "h"})
        for name in ("httpx", "httpx2", "httpcore", "pymongo"):
            logging.getLogger(name).info("GET https://u:p@h")
    (text,) = (tmp_path / "log").read_text().splitlines()
    row = json.loads(text)
    assert (row["message"], row["host"], row["action"]) == ("took 5 ms", "h", "log")


@given(st.text(), st.text(), st.text(min_size=1))
def test_any_text_gives_one_parseable_line(message: str, value: str, name: str) -> None:
    """Newlines, escape sequences, lone surrogates and NULs stay inside their field."""
    text = JsonFormatter(Redactor()).format(record(message, **{name: value}))
    assert text.isascii()
    assert text.isprintable()
    assert isinstance(json.loads(text), dict)


@given(st.one_of(st.integers(), st.floats(), st.binary(), st.lists(st.text()), st.booleans(), st.none()))
def test_any_value_gives_one_parseable_line(value: object) -> None:
    """What JSON cannot hold (NaN, bytes, huge numbers) becomes text."""
    line("m", value=value)


@given(st.text(max_size=200))
def test_people_see_one_line_without_escape_sequences(value: str) -> None:
    """A terminal shows no newline and no control character that came from data."""
    text = PersonFormatter(Redactor()).format(record(value, key=value))
    ours = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert ours.isprintable()


def test_fields_cannot_replace_the_lines_own_parts() -> None:
    """A field named like a part of the line gets another name."""
    row = line("m", level="x", action="y", ts="z", fields="f")
    assert (row["level"], row["action"], row["level_"], row["action_"], row["ts_"]) == ("info", "tested", "x", "y", "z")


def test_long_and_many_fields_are_bounded() -> None:
    """No record makes an endless line."""
    row = line("m" * 10**6, **{f"f{number}": "x" * 10**6 for number in range(100)})
    assert len(json.dumps(row)) < 100_000
    assert len(row) < 50


@pytest.mark.parametrize(
    "text",
    [
        "mongodb+srv://worker:canarypw@cluster.example.net/db",
        "mongodb://worker:canary@pw/x@cluster.example.net/db",
        "https://canarytoken@example.com/x",
        "GET https://h/?api_key=canary123&x=1",
        "Authorization: Bearer canary.abc-def",
        "'Authorization': 'Bearer canaryabcdef'",
        '{"api_key": "canary123"}',
        "OPENROUTER_API_KEY=canary123",
        "password=canary",
        "key sk-canary12345678 refused",
        "bad Canary/Pass1 here",
        "see sk-or-v1-canarykey2",
    ],
)
def test_secrets_are_masked_everywhere(text: str) -> None:
    """In messages, fields and error texts alike, for configured values and for the shapes of secrets."""
    try:
        raise ValueError(text)  # noqa: TRY301 - the traceback is what is tested
    except ValueError as error:
        made = record(text, note=text)
        made.exc_info = (type(error), error, error.__traceback__)
    for formatter in (JsonFormatter(Redactor(SECRETS)), PersonFormatter(Redactor(SECRETS))):
        shown = formatter.format(made).replace("raise ValueError(text)", "")
        assert "canary" not in shown.lower()
        assert MASK in shown


def test_a_fields_name_can_make_it_a_secret() -> None:
    """What is called a password is masked whatever it looks like."""
    assert line("m", atlas_uri="x", db_password="y", api_key="z") | {"ts": 0} == {  # noqa: S106
        "ts": 0,
        "level": "info",
        "action": "tested",
        "message": "m",
        "logger": "worker.test",
        "atlas_uri": MASK,
        "db_password": MASK,
        "api_key": MASK,
    }


def test_plain_text_is_left_alone() -> None:
    """Addresses without credentials, times and ordinary words pass."""
    for text in ("https://example.com:8080/a?b=c", "at 12:30 tokens: 5", "skateboard sk-8", "the password is wrong"):
        assert Redactor(SECRETS)(text) == text


def test_masking_takes_linear_time() -> None:
    """A hostile text of many almost-URIs does not hold the caller: in processor time, the best of three."""
    took: list[float] = []
    for _ in range(3):
        began = time.process_time()
        Redactor(SECRETS)("://a:" * 100_000 + "api_key=" * 100_000)
        took.append(time.process_time() - began)
    assert min(took) < 0.05


def test_an_error_is_shown_with_its_traceback(tmp_path: Path) -> None:
    """`error=` gives the traceback, without values of locals."""
    with pipe_into(tmp_path / "log"):
        try:
            hidden = "local canary"
            raise KeyError(len(hidden))  # noqa: TRY301
        except KeyError as error:
            log(logger, logging.ERROR, "task_died", "gone", error=error)
        log(logger, logging.ERROR, "odd", "gone", error="only words")
    first, second = (json.loads(text) for text in (tmp_path / "log").read_text().splitlines())
    assert first["error"].startswith("Traceback")
    assert first["error"].endswith("KeyError: 12")
    assert 'local canary"' not in first["error"].split("raise")[-1]
    assert second["error_"] == "only words"


def test_a_record_that_cannot_be_formatted_is_counted(tmp_path: Path) -> None:
    """A library's wrong arguments neither raise in the caller nor print elsewhere."""
    with pipe_into(tmp_path / "log") as pipe:
        logging.getLogger("some.library").warning("%d", "x")
        assert pipe.dropped == 1
    assert (tmp_path / "log").read_text() == ""


def test_a_slow_reader_stops_nobody() -> None:
    """With nobody reading the pipe, logging goes on, the queue stays bounded and drops are counted."""
    read, write = os.pipe()
    pipe = configure("INFO", fd=write, colour=False)
    try:
        began = time.perf_counter()
        for number in range(QUEUE_LINES * 2):
            log(logger, logging.INFO, "flood", "x" * 500, number=number)
        assert time.perf_counter() - began < 5
        assert pipe.dropped > 0
    finally:
        os.close(write)
        drained = threading.Thread(target=_drain, args=(read,))
        drained.start()
        pipe.stop()
        drained.join()


def _drain(read: int) -> None:
    while os.read(read, 65536):
        pass
    os.close(read)


def test_a_closed_reader_stops_nobody() -> None:
    """A pipe whose reader has gone loses lines, counts them, and nothing raises."""
    read, write = os.pipe()
    os.close(read)
    with configure("INFO", fd=write, colour=False) as pipe:
        os.close(write)
        log(logger, logging.INFO, "lost", "nobody hears this")
    assert pipe.dropped == 1


def test_a_full_disk_stops_nobody() -> None:
    """/dev/full takes nothing: lines are counted as lost."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full, configure("INFO", fd=full.fileno(), colour=False) as pipe:
        log(logger, logging.INFO, "lost", "no space")
    assert pipe.dropped == 1


def test_stop_gives_the_root_back(tmp_path: Path) -> None:
    """The former handlers and levels return; stopping twice is harmless."""
    root = logging.getLogger()
    former = (root.handlers[:], root.level, logging.getLogger("httpx").level)
    with pipe_into(tmp_path / "log") as pipe:
        assert root.handlers == [pipe]
    pipe.stop()
    assert (root.handlers, root.level, logging.getLogger("httpx").level) == former


def test_a_terminal_gets_colours(tmp_path: Path) -> None:
    """People see the time of day, the level, the message and `key=value`; a traceback stands below, indented."""
    with pipe_into(tmp_path / "log", colour=True):
        log(logger, logging.INFO, "started", "leading", epoch=4, error=ValueError("why"))
    text = re.sub(r"\x1b\[[0-9;]*m", "", (tmp_path / "log").read_text())
    assert re.fullmatch(r"\d\d:\d\d:\d\d INFO    leading  epoch=4\n  ValueError: why\n", text)
