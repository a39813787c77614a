"""Every mistake an operator can make ends with its exit code and a sentence that helps."""

import socket
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from tests.support.processes import command, environment
from tests.support.secantus import IN_MEMORY, secantus

pytestmark = pytest.mark.slow

GOOD = {"ATLAS_URI": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=200", "OPENROUTER_API_KEY": "sk-or-secret-canary"}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ATLAS_URI": "", "OPENROUTER_API_KEY": "k"}, "ATLAS_URI"),
        ({"ATLAS_URI": "postgres://x"}, "ATLAS_URI"),
        ({"OPENROUTER_API_KEY": ""}, "OPENROUTER_API_KEY"),
        ({"EMBEDDING_DIMENSIONS": "384"}, "EMBEDDING_DIMENSIONS"),
        ({"EMBEDDING_DIMENSIONS": "many"}, "EMBEDDING_DIMENSIONS"),
        ({"WORKER_COALESE_MS": "300"}, "WORKER_COALESCE_MS"),
        ({"WORKER_SOURCES": "tricks"}, "WORKER_SOURCES"),
        ({"WORKER_METRICS_PORT": "99999"}, "WORKER_METRICS_PORT"),
        ({"OPENROUTER_BASE_URL": "http://example.com/v1"}, "OPENROUTER_BASE_URL"),
    ],
)
@pytest.mark.parametrize("name", ["check-config", "run"])
def test_wrong_settings(name: str, settings: dict[str, str], says: str) -> None:
    """78, the variable's name (or the near one), and no secret."""
    done = command(name, env=environment(**{**GOOD, **settings}))
    assert done.code == 78
    assert says in done.err
    assert "Traceback" not in done.err
    assert "canary" not in done.err


def test_every_mistake_at_once() -> None:
    """Three mistakes, three lines."""
    env = environment(ATLAS_URI="x", OPENROUTER_API_KEY="k", WORKER_DRAIN_SECONDS="-1", VECTOR_SEARCH="magic")
    done = command("check-config", "--json", env=env)
    assert done.code == 78
    assert all(
        name in done.value["error"]["message"] for name in ("ATLAS_URI", "WORKER_DRAIN_SECONDS", "VECTOR_SEARCH")
    )


def test_a_taken_port(tmp_path: Path) -> None:
    """`run` names the port and the variable, with 78."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = command("run", env=environment(**GOOD, WORKER_METRICS_PORT=str(port)))
    assert done.code == 78
    assert str(port) in done.err
    assert "WORKER_METRICS_PORT" in done.err


def test_a_pin_of_another_model(mongo_uri: str, database_name: str) -> None:
    """A database pinned to one model is not touched under another: 78, naming both."""
    env = environment(ATLAS_URI=mongo_uri, ATLAS_DB=database_name, OPENROUTER_API_KEY="k", WORKER_METRICS_PORT="0")
    for looking in (["check-config"], ["status"], ["verify"], ["plan"], ["dead-letters", "list"], ["index", "status"]):
        # who only looks pins nothing
        assert command(*looking, "--json", env=env).code == 0
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        assert client[database_name].list_collection_names() == []
    assert command("backfill", "--json", env=env).code == 0
    other = {**env, "EMBEDDING_MODEL": "openai/text-embedding-3-large", "EMBEDDING_DIMENSIONS": "3072"}
    done = command("status", "--json", env=other)
    assert done.code == 78
    assert "text-embedding-3-small" in done.err
    assert "text-embedding-3-large" in done.err


def test_a_source_that_is_not_watched(mongo_uri: str, database_name: str) -> None:
    """It cannot be looked at by who does not watch it: 78, naming the setting."""
    env = environment(ATLAS_URI=mongo_uri, ATLAS_DB=database_name, OPENROUTER_API_KEY="k", WORKER_SOURCES="docs")
    for name in ("backfill", "verify"):
        done = command(name, "--source", "spots", "--json", env=env)
        assert done.code == 78, done.err
        assert "WORKER_SOURCES" in done.err


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("worker", ["dance"]),
        ("worker", ["run", "--fast"]),
        ("worker", ["docs-sync"]),
        ("worker", ["docs-sync", ".", "--base-url", "//x"]),
        ("worker", ["docs-sync", ".", "--base-url", "/x?y#z"]),
        ("worker", ["docs-sync", ".", "--site", "a b/../x"]),
        ("worker", ["docs-sync", ".", "--allow", "../**"]),
        ("worker", ["backfill", "--source", "tricks"]),
        ("worker", ["verify", "--sample", "-1"]),
        ("worker", ["dead-letters"]),
        ("worker", ["dead-letters", "drop"]),
        ("worker", ["status", "--data"]),
        ("brain", ["dance"]),
        ("brain", ["search"]),
        ("brain", ["search", " "]),
        ("brain", ["search", "ollie", "--sport", "chess"]),
        ("brain", ["search", "ollie", "--limit", "0"]),
        ("brain", ["search", "ollie", "--fast"]),
    ],
)
def test_usage_errors(module: str, arguments: list[str]) -> None:
    """64 for an unknown command, option, or a missing argument; with --json one JSON value says so on stdout."""
    env = environment() if module == "brain" else environment(**GOOD)
    assert command(*arguments, env=env, module=module).code == 64
    done = command(arguments[0], "--json", *arguments[1:], env=env, module=module)
    assert done.code == 64
    error = done.value["error"]
    assert (error["type"], error["exitCode"], done.value["ok"]) == ("UsageError", 64, False)
    assert error["message"] in " ".join(done.err.split()) or "no command" in error["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["verify"],
        ["verify", "--repair"],
        ["plan"],
        ["dead-letters", "list"],
        ["pin", "status"],
        ["index", "status"],
    ],
)
def test_a_folder_where_no_database_lives(tmp_path: Path, arguments: list[str]) -> None:
    """Who only looks makes none at a mistyped name: 78, naming the folder, and nothing is left there."""
    typo = tmp_path / "typo"
    done = command(*arguments, "--data", str(typo), "--json", env=environment())
    assert done.code == 78
    assert str(typo) in done.value["error"]["message"]
    assert not typo.exists()
    (tmp_path / "empty").mkdir()
    assert command(*arguments, "--data", str(tmp_path / "empty"), env=environment()).code == 78
    assert list((tmp_path / "empty").iterdir()) == []


def test_sample_data_needs_an_embedded_database() -> None:
    """The sample never goes to a database that this project did not start."""
    done = command("run", "--sample", "deploy/sample", env=environment(**GOOD))
    assert done.code == 78
    assert "--embedded" in done.err


def test_docs_sync_mistakes(tmp_path: Path, mongo_uri: str, database_name: str) -> None:
    """No allow-list: 64 and the folders; no folder: 78; a file that is not UTF-8: 1, named, the others synced."""
    env = environment(ATLAS_URI=mongo_uri, ATLAS_DB=database_name)
    tree = tmp_path / "docs"
    (tree / "guide").mkdir(parents=True)
    (tree / "guide" / "one.md").write_text("# One\n\nText.\n")
    (tree / "bad.md").write_bytes(b"# Caf\xe9\n")
    nothing = command("docs-sync", str(tree), "--json", env=env)
    assert (nothing.code, nothing.value["folders"]["guide"]) == (64, 1)
    assert command("docs-sync", str(tree / "absent"), "--json", env=env).code == 78
    done = command("docs-sync", str(tree), "--allow", "**", "--json", env=env)
    assert (done.code, done.value["added"], list(done.value["problems"])) == (1, ["guide/one.md"], ["bad.md"])
    again = command("docs-sync", str(tree), "--allow", "**", "--json", env=env).value
    assert (again["added"], again["changed"], again["kept"]) == ([], [], 1)


def test_a_standalone_server(tmp_path: Path) -> None:
    """A server without change streams: 78, naming what to do."""
    with secantus(tmp_path, *IN_MEMORY, "--standalone") as server:
        uri = f"mongodb://{server.address}/"
        for name in ("check-config", "run", "backfill"):
            done = command(name, env=environment(ATLAS_URI=uri, OPENROUTER_API_KEY="k", WORKER_METRICS_PORT="0"))
            assert done.code == 78, done.err
            assert "replica set" in done.err
            assert "Traceback" not in done.err
