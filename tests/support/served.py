"""Fixtures of tests with real workers: an embedder over HTTP, settings, the database as the backend sees it.

A conftest takes them over by importing them.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient

from tests.support.crashes import Store, settings
from tests.support.processes import Embedder, embedder


@pytest.fixture(scope="module")
def fake() -> Iterator[Embedder]:
    """An embedder for one file's workers."""
    with embedder() as running:
        yield running


@pytest.fixture
def env(mongo_uri: str, database_name: str, fake: Embedder) -> dict[str, str]:
    """The settings of one test's workers; no model is named, and the embedder answers well."""
    fake.script({"*": {}})
    return settings(mongo_uri, database_name, fake)


@pytest.fixture
def database(mongo_uri: str, database_name: str) -> Iterator[Store]:
    """The database of one test, as the backend sees it."""
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        yield client[database_name]
