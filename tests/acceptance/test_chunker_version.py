"""A new chunker version re-shapes every document at the next start, and embeds only texts that are new."""

from pathlib import Path
from typing import Any, Final

from pymongo import MongoClient

from tests.support.processes import embedder, environment, worker

BUMPED: Final = """
import sys
from dataclasses import replace
from worker.sources import registry

class Louder:
    chunker_version = {version}
    def __init__(self, inner):
        self.inner = inner
        self.collection = inner.collection
        self.neighbours = inner.neighbours
    def shape(self, document, setting):
        shaped = self.inner.shape(document, setting)
        loud = document.get("title") == {loud!r}
        return replace(shaped, parts=tuple(replace(p, text=p.text + "!") if loud else p for p in shaped.parts))

registry.SOURCES["coaching"] = Louder(registry.SOURCES["coaching"])
from worker.cli import main
sys.argv = ["worker", "run"]
main()
"""


def test_a_new_version_embeds_only_new_texts(tmp_path: Path, mongo_uri: str, database_name: str) -> None:
    """All rows get the new contentHash; a text that is as it was keeps its vector; other kinds are not touched."""
    with embedder() as fake, MongoClient[dict[str, Any]](mongo_uri) as client:
        env = environment(
            ATLAS_URI=mongo_uri,
            ATLAS_DB=database_name,
            OPENROUTER_API_KEY="sk-or-v1-test",
            OPENROUTER_BASE_URL=fake.url,
        )
        database = client[database_name]
        database.coaching.insert_many([{"title": f"Tip {number}", "text": f"Breathe {number}."} for number in range(5)])
        database.riders.insert_one({"canonicalName": "Nadia", "reviewStatus": "published"})

        def rows(*program: str) -> dict[str, dict[str, Any]]:
            with worker(tmp_path, env, program=program) as running:
                running.until_ready()
                assert running.stop() == 0
            return {row["title"]: row for row in database.knowledge_chunks.find()}

        before = rows()
        assert fake.counters()["texts"] == 6
        bumped = rows("-c", BUMPED.format(version=1000, loud=""))
        assert fake.counters()["texts"] == 6
        assert bumped["Nadia"] == before["Nadia"]
        for title in before.keys() - {"Nadia"}:
            assert bumped[title]["contentHash"] != before[title]["contentHash"]
            kept = ("_id", "text", "textHash", "embedding", "title")
            assert [bumped[title][name] for name in kept] == [before[title][name] for name in kept]
        louder = rows("-c", BUMPED.format(version=1001, loud="Tip 3"))
        assert fake.counters()["texts"] == 7
        assert louder["Tip 3"]["text"] == "Tip 3\n\nBreathe 3.!"
        again = rows("-c", BUMPED.format(version=1001, loud="Tip 3"))
        assert again == louder
        assert fake.counters()["texts"] == 7
