"""What the documents name exists: commands and their options, variables, metrics, words of the log, files, tests."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final

import click
import pytest

from brain.cli import cli as brain
from brain.config import BrainSettings
from brain.knowledge.environment import variables
from worker.cli import cli as worker
from worker.config import WorkerSettings
from worker.observe.metrics import PrometheusMeter

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("worker", "brain", "deploy", "tests")
PROGRAM: Final = re.compile(r"(?:trickbook-|python -m )(worker|brain)\s+(.*)")
OURS: Final = re.compile(r"(?:WORKER|BRAIN|EMBEDDING|OPENROUTER|ATLAS)_")
BENCH: Final = frozenset({"--quick", "--json", "--with-cocoindex", "--with-engines"})

each_document = pytest.mark.parametrize(
    "name", ["README.md", "deploy/RUNBOOK.md", "worker/README.md", "brain/README.md", "tests/README.md"]
)


def text(name: str) -> str:
    """A document."""
    return (ROOT / name).read_text()


def spans(name: str) -> list[str]:
    """What stands between backticks, and the lines of its blocks of commands."""
    blocks = re.compile(r"(?ms)^```\w*\n(.*?)^```")
    lines = [line.partition("#")[0].strip() for block in blocks.findall(text(name)) for line in block.splitlines()]
    return [*re.findall(r"`([^`\n]+)`", blocks.sub("", text(name))), *lines]


@cache
def files() -> dict[str, str]:
    """Every file of ours by its path from the root, with its text where that is Python."""
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in FOLDERS:
        tops = [path for path in (ROOT / folder).iterdir() if path.name not in {"node", "__pycache__"}]
        found += [path for top in tops for path in (top.rglob("*.*") if top.is_dir() else [top])]
    return {path.relative_to(ROOT).as_posix(): path.read_text() if path.suffix == ".py" else "" for path in found}


@cache
def words() -> frozenset[str]:
    """Every word of the code, this file's own not counted."""
    return frozenset(re.findall(r"\w+", "\n".join(code for path, code in files().items() if path != _own())))


def _own() -> str:
    return Path(__file__).relative_to(ROOT).as_posix()


def options(command: click.Command) -> set[str]:
    """Of a command, and of those below it."""
    found = {word for each in command.params for word in (*each.opts, *each.secondary_opts)}
    return found.union(*(options(each) for each in getattr(command, "commands", {}).values()))


def meant(command: click.Command, given: list[str]) -> click.Command:
    """The command that the words lead to, as far as they do."""
    below = getattr(command, "commands", {})
    return meant(below[given[0]], given[1:]) if given and given[0] in below else command


@each_document
def test_every_command_and_option_exists(name: str) -> None:
    """An option is one of the command that it stands behind."""
    roots = {"worker": worker, "brain": brain}
    for span in spans(name):
        program = PROGRAM.search(span)
        given = re.findall(r"[\w-]+", program[2] if program else span)
        found = [meant(root, given) for key, root in roots.items() if program is None or program[1] == key]
        if program is not None and given and not given[0].startswith("-"):
            assert found[0] not in roots.values(), f"`{span}`: there is no such command"
        flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", span))
        if program or span.startswith("--") or any(each not in roots.values() for each in found):
            assert flags <= set().union(*(options(each) for each in found)) | BENCH, span


@each_document
def test_every_variable_exists(name: str) -> None:
    """Settings are of the programs; others are read somewhere."""
    settings = {*variables(WorkerSettings), *variables(BrainSettings)}
    for variable in re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", " ".join(spans(name))):
        assert variable in (settings if OURS.match(variable) else words()), variable


@each_document
def test_every_metric_and_collection_exists(name: str) -> None:
    """Under its full name."""
    meter = PrometheusMeter(["spots"])
    meter.read_log_drops(lambda: 0)
    code = "\n".join(code for path, code in files().items() if path.startswith(("worker/", "brain/")))
    real = {
        *re.findall(r"^# TYPE (\S+)", meter.render().decode(), re.MULTILINE),
        *re.findall(r'"(freshness_\w+)"', code),
    }
    for found in re.findall(r"freshness_\w+", text(name)):
        assert found in real or found.removesuffix("_bucket") in real, found
    for choice in re.findall(r"freshness_\(([\w|]+)\)", text(name)):
        for start in choice.split("|"):
            assert any(each.startswith(f"freshness_{start}") for each in real), start


@each_document
def test_every_word_of_the_code_exists(name: str) -> None:
    """Actions of the log, fields, collections, modules: whatever is written like one."""
    stems = " ".join(Path(path).stem for path in files())
    for span in spans(name):
        for word in re.findall(r"^(?!freshness_)[a-z][a-z0-9]*(?:_[a-z0-9]+)+$|(?<=\"action\": \")\w+", span):
            assert word in words() or word in stems, word


@each_document
def test_every_file_and_test_exists(name: str) -> None:
    """Files by a path from the root or below the document's folder; tests by a name in their file."""
    missing: list[str] = []
    for span in spans(name):
        path, _, test = span.rpartition("::")
        if re.fullmatch(r"[\w./-]+\.(?:py|md|mjs|cjs|yml|toml|service|example)", span):
            missing += [] if _files(name, span) else [span]
        elif re.fullmatch(r"test_[\w*]+(?:\[.*\])?", test) and (path or not _files(name, f"{test}.py")):
            homes = _files(name, path if path.endswith(".py") else f"{path}.py") if path else list(files())
            there = any(fnmatchcase(each, test.partition("[")[0]) for each in _tests(homes))
            missing += [] if there else [span]
    assert not missing


def _files(document: str, path: str) -> list[str]:
    """The files that a path in a document may mean; in tests/README.md also by the end of their name."""
    folder = document.rpartition("/")[0]
    below = [each for each in files() if each.startswith(folder) and f"/{each}".endswith(f"/{path}")]
    ends = [each for each in files() if folder == "tests" and each.endswith(f"_{path}")]
    return [each for each in files() if each == path] or below or ends


def _tests(homes: list[str]) -> Iterator[str]:
    for home in homes:
        yield from re.findall(r"def (test_\w+)", files()[home])
