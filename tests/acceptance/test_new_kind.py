"""A new kind of document is one file and one registration: a real worker, from the change to the search."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from pymongo import MongoClient

from tests.support.processes import embedder, environment, eventually, worker
from worker.sources.coaching import Coaching
from worker.sources.docs import Docs
from worker.sources.events import Events
from worker.sources.films import Films
from worker.sources.kinds import KINDS
from worker.sources.registry import SOURCES, load
from worker.sources.riders import Riders
from worker.sources.source import Source
from worker.sources.spots import Spots
from worker.sources.trickipedia import Trickipedia

# Typed, so that pyright checks what `registry` can only load by name.
ALL: Final[tuple[Source, ...]] = (Trickipedia(), Docs(), Coaching(), Films(), Spots(), Events(), Riders())
SHOPS: Final = '''
"""Shops: the file that somebody who adds a kind would write."""

from dataclasses import dataclass

from brain.knowledge.chunk import Metadata
from worker.model import Shaped
from brain.knowledge.domain.fields import Fields
from worker.sources.parts import paragraphs, parts_of


@dataclass(frozen=True, slots=True)
class Shops:
    """The shops collection."""

    collection: str = "shops"
    chunker_version: int = 1

    def neighbours(self, document):
        return ()

    def shape(self, document, setting):
        if document.get("status") != "published":
            return Shaped()
        fields = Fields(document)
        name = fields.line("name")
        metadata = Metadata("spot", name, fields.sport("sport"), f"/shops/{fields.slug('slug')}")
        return Shaped(tuple(parts_of(name, paragraphs(fields.text("about")), metadata, setting, fields)))
'''
REGISTERED: Final = """
import sys
import worker.sources, worker.sources.kinds
worker.sources.__path__.append({folder!r})
worker.sources.kinds.KINDS["shops"] = "shops:Shops"
from worker.cli import main
sys.argv = ["worker", *{arguments!r}]
sys.exit(main())
"""


def test_every_kind_is_registered_once() -> None:
    """The registry holds exactly the kinds there are; one under another's name is refused at the start."""
    assert tuple(SOURCES.values()) == ALL
    with pytest.raises(ValueError, match="is registered for shops"):
        load({**KINDS, "shops": "spots:Spots"})


def test_a_new_kind_flows_through_a_real_worker(tmp_path: Path, mongo_uri: str, database_name: str) -> None:
    """Its documents become chunks, follow changes, hide, are named in the metrics, and are verified."""
    (tmp_path / "shops.py").write_text(SHOPS, "utf-8")

    def program(*arguments: str) -> tuple[str, str]:
        return "-c", REGISTERED.format(folder=str(tmp_path), arguments=arguments)

    with embedder() as fake, MongoClient[dict[str, Any]](mongo_uri) as client:
        env = environment(
            ATLAS_URI=mongo_uri,
            ATLAS_DB=database_name,
            OPENROUTER_API_KEY="sk-or-v1-test",
            OPENROUTER_BASE_URL=fake.url,
            WORKER_COALESCE_MS="20",
        )
        shops, chunks = client[database_name].shops, client[database_name].knowledge_chunks
        shops.insert_one({"name": "Deck Doctor", "slug": "deck", "about": "Grip tape.", "status": "published"})
        with worker(tmp_path, env, program=program("run")) as running:
            running.until_ready()
            found = chunks.find_one({"source": "shops"}) or {}
            assert (found["text"], found["url"], found["sport"]) == ("Deck Doctor\n\nGrip tape.", "/shops/deck", None)
            shops.update_one({}, {"$set": {"sport": "Skate", "about": "Wheels."}})
            eventually(lambda: chunks.find_one({"text": {"$regex": "Wheels"}, "sport": "skateboarding"}), "the change")
            assert running.metric('freshness_events_total{outcome="applied",source="shops"}') >= 1
            shops.update_one({}, {"$set": {"status": "draft"}})
            eventually(lambda: chunks.find_one({"source": "shops"}) is None, "the hiding")
            assert running.stop() == 0
        verified = command_of(program("verify", "--json"), env)
        assert (verified["ok"], "shops" in verified["sources"]) == (True, True)


def command_of(program: tuple[str, str], env: dict[str, str]) -> dict[str, Any]:
    """The JSON answer of a command of the program that knows the new kind."""
    done = subprocess.run([sys.executable, *program], env=env, capture_output=True, text=True, check=True, timeout=120)
    return dict(json.loads(done.stdout))
