"""Databases for the tests: SecantusDB from the virtual environment, or the one that TEST_ATLAS_URI names."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pymongo import MongoClient

from tests.support.figures import lines
from tests.support.secantus import IN_MEMORY, secantus
from worker.mongo.ping import answers

_ATLAS_LOCAL: Final = "mongodb/mongodb-atlas-local:latest"
_START_SECONDS: Final = 30
_FLAGS: Final = ("--enable-test-commands", "--noop-heartbeat-seconds", "1", "--oplog-max-entries", "20000")
"""It reads its whole history to tell its first entry; a test that writes more takes a server of its own."""
_DOCKER_SECONDS: Final = 10


@pytest.fixture(scope="session")
def mongo_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with change streams and transactions: TEST_ATLAS_URI, else a SecantusDB of this test session."""
    given = os.environ.get("TEST_ATLAS_URI")
    if given:
        yield given
        return
    with secantus(tmp_path_factory.mktemp("secantus"), *IN_MEMORY, *_FLAGS) as server:
        yield server.uri


@pytest.fixture
def database_name(mongo_uri: str) -> Iterator[str]:
    """The name of a database that no other test uses; dropped afterwards."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield name
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        client.drop_database(name)


@pytest.fixture(scope="session")
def atlas_uri() -> Iterator[str]:
    """A database with vector search: TEST_ATLAS_URI, else Atlas Local where Docker and its image are at hand."""
    given = os.environ.get("TEST_ATLAS_URI")
    if given:
        yield given
        return
    docker = shutil.which("docker")
    if docker is None:
        pytest.skip("TEST_ATLAS_URI is not set and there is no Docker")
    try:
        image = subprocess.run(
            [docker, "image", "inspect", _ATLAS_LOCAL], capture_output=True, timeout=_DOCKER_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("TEST_ATLAS_URI is not set and Docker does not answer")
    if image.returncode != 0:
        pytest.skip(f"TEST_ATLAS_URI is not set and Docker does not answer or lacks the image {_ATLAS_LOCAL}")
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415  # only where Docker is there

    with DockerContainer(_ATLAS_LOCAL).with_exposed_ports(27017) as container:
        uri = (
            f"mongodb://{container.get_container_host_ip()}:{container.get_exposed_port(27017)}/?directConnection=true"
        )
        assert answers(uri, _START_SECONDS)
        yield uri


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests recorded, whichever process they ran in."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    found = list(dict.fromkeys(lines(reports)))
    if found:
        terminalreporter.section("figures")
        for line in found:
            terminalreporter.write_line(line)
