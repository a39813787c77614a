"""What ends a one-shot command, alone or in a group of tasks: its words and its exit code."""

import json

import pytest

from worker.cli import _ended  # pyright: ignore[reportPrivateUsage]
from worker.errors import Fatal, Poison, Refused, Unreachable


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Unreachable("no answer"), 75, "no answer"),
        (ExceptionGroup("tasks", [Unreachable("no answer")]), 75, "no answer"),
        (ExceptionGroup("tasks", [Unreachable("no answer"), ExceptionGroup("x", [Refused("no key")])]), 78, "no key"),
        (ExceptionGroup("tasks", [Poison("too large")]), 70, "too large"),
        (Fatal("code 8"), 70, "code 8"),
    ],
)
def test_what_was_foreseen_is_told_in_its_own_words(
    error: Exception, code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, no traceback; the code of what counts most."""
    assert _ended(error) == code
    assert capsys.readouterr().err == f"trickbook-worker: {words}\n"


def test_a_bug_is_told_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """With its traceback, also beside an error that was foreseen."""
    assert _ended(ExceptionGroup("tasks", [Unreachable("no answer"), KeyError("bug")])) == 70
    assert "KeyError: 'bug'" in capsys.readouterr().err


def test_a_bug_is_one_json_value_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """On stdout, where JSON was asked for, without the words of the bug: those may hold anything."""
    monkeypatch.setattr("sys.argv", ["worker", "status", "--json"])
    assert _ended(KeyError("a secret")) == 70
    told = json.loads(capsys.readouterr().out)
    assert told["error"] == {
        "type": "KeyError",
        "message": "a bug of this program: the traceback is on stderr",
        "exitCode": 70,
    }
