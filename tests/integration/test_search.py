"""The way of a query, against a real database: pin, engine, embedding, hits; then the same as a command."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bson import Timestamp
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row, Target, find_target, live_server, open_client
from brain.knowledge.embedding import EmbeddingClient
from brain.knowledge.embedding.local import LocalClient
from brain.knowledge.errors import ConfigurationFault, PinMismatch, Unavailable
from brain.knowledge.pin import ACTIVE, MINILM, OPENAI_SMALL, PINS, Pin
from brain.knowledge.pins import active_pin, ensure_pin
from brain.knowledge.search import Filter
from brain.knowledge.search.atlas import AtlasSearch
from brain.knowledge.search.exact import ExactSearch
from brain.knowledge.search.service import KnowledgeSearch
from brain.knowledge.search.vectors import binary

CHUNKS = {
    "trickipedia/o:1/0": ("Kickflip", "trick", "skateboarding", "Kickflip: flick the board to roll it over."),
    "trickipedia/o:2/0": ("Ollie", "trick", "skateboarding", "Ollie: pop the tail and jump with the board."),
    "trickipedia/o:3/0": ("Butter", "trick", "snowboarding", "Butter: press the nose and spin on snow."),
    "spots/o:4/0": ("Venice Skatepark", "spot", "skateboarding", "Venice Skatepark: concrete bowls by the beach."),
    "docs/o:5/0": ("Upload", "doc", None, "How to upload a video from your phone."),
}

pytestmark = pytest.mark.skipif(
    "TEST_ATLAS_URI" in os.environ, reason="about servers without vector search; test_atlas_live.py is the other half"
)

DEAD_URI = "mongodb://user:pa55word@127.0.0.1:1/"


@pytest.fixture
async def database(mongo_uri: str, database_name: str) -> AsyncIterator[AsyncDatabase[Row]]:
    """A fresh database, dropped afterwards."""
    client = open_client(Target(mongo_uri, database_name, embedded=True))
    yield client[database_name]
    await client.drop_database(database_name)
    await client.close()


@pytest.fixture(scope="module")
def embedder() -> Iterator[LocalClient]:
    """The local model, loaded once."""
    client = LocalClient()
    yield client
    asyncio.run(client.close())


async def _fill(database: AsyncDatabase[Row], embedder: EmbeddingClient) -> None:
    """Store the chunks as the worker does, and three that no search may return."""
    embedded = await embedder.embed([text for *_, text in CHUNKS.values()])
    rows: list[dict[str, Any]] = [
        {
            "_id": chunk,
            "title": title,
            "docType": kind,
            "sport": sport,
            "text": text,
            "url": f"/{title.lower()}",
            "model": MINILM.name,
            "dimensions": 384,
            "embedding": binary(vector),
            "sourceVersion": Timestamp(7, 1),
            "indexedAt": datetime.now(UTC),
        }
        for (chunk, (title, kind, sport, text)), vector in zip(CHUNKS.items(), embedded.vectors, strict=True)
    ]
    kickflip = embedded.vectors[0]
    rows += [
        {**rows[0], "_id": "other-model", "model": OPENAI_SMALL.name},
        {**rows[0], "_id": "other-width", "embedding": binary(kickflip[:100])},
        {**rows[0], "_id": "no-vector", "embedding": None},
    ]
    await database["knowledge_chunks"].insert_many(rows)
    await ensure_pin(database, MINILM)


async def test_a_question_finds_its_chunk(database: AsyncDatabase[Row], embedder: LocalClient) -> None:
    """The nearest chunk comes first, with its text and without its vector, by the engine that this server has."""
    await _fill(database, embedder)
    found = await KnowledgeSearch(database, embedder).search("how do I make my board roll over with a flick", limit=3)
    assert found.engine == "exact"
    assert found.pin == Pin(MINILM.name, 384)
    assert found.hits[0].id == "trickipedia/o:1/0"
    assert found.hits[0].fields["text"] == CHUNKS["trickipedia/o:1/0"][3]
    assert "embedding" not in found.hits[0].fields
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    assert all(0 <= hit.score <= 1 for hit in found.hits)


async def test_filters_and_limits(database: AsyncDatabase[Row], embedder: LocalClient) -> None:
    """Any spelling of a sport filters, kinds filter, and rows that cannot be compared never come."""
    await _fill(database, embedder)
    search = KnowledgeSearch(database, embedder)
    every = await search.search("board", limit=50)
    assert {hit.id for hit in every.hits} == set(CHUNKS)
    snow = await search.search("board", sport="Snow")
    assert [hit.id for hit in snow.hits] == ["trickipedia/o:3/0"]
    spots = await search.search("board", sport="skate", doc_type="spot")
    assert [hit.id for hit in spots.hits] == ["spots/o:4/0"]
    assert (await search.search("board", sport="mtb")).hits == ()
    assert len((await search.search("board", limit=2)).hits) == 2
    for wrong in (0, 51):
        with pytest.raises(ValueError, match="limit"):
            await search.search("board", limit=wrong)
    with pytest.raises(ValueError, match="document type"):
        await search.search("board", doc_type="poem")


async def test_what_was_removed_since_the_load_is_not_found(
    database: AsyncDatabase[Row], embedder: LocalClient
) -> None:
    """A deleted chunk never comes back, and a text that was edited in place is shown as it is now."""
    await _fill(database, embedder)
    engine = ExactSearch(database["knowledge_chunks"], Pin(MINILM.name, 384))
    vector = (await embedder.embed(["kickflip"])).vectors[0]
    assert len(await engine.search(vector, 50, Filter())) == len(CHUNKS)
    await database["knowledge_chunks"].delete_one({"_id": "trickipedia/o:1/0"})
    await database["knowledge_chunks"].update_one(
        {"_id": "trickipedia/o:2/0"}, {"$set": {"text": "new", "sport": "bmx"}}
    )
    now = {hit.id: hit for hit in await engine.search(vector, 50, Filter())}
    assert set(now) == set(CHUNKS) - {"trickipedia/o:1/0"}
    assert now["trickipedia/o:2/0"].fields["text"] == "new"
    assert "trickipedia/o:2/0" not in {h.id for h in await engine.search(vector, 50, Filter(sport="skateboarding"))}
    for wrong in (vector[:5], vector * 0, vector * np.float32("nan")):
        with pytest.raises(ValueError, match="query vector"):
            await engine.search(wrong, 5, Filter())


async def test_nothing_indexed_and_another_pin(database: AsyncDatabase[Row], embedder: LocalClient) -> None:
    """An empty database says what to start; a foreign pin is refused before anything is embedded or compared."""
    search = KnowledgeSearch(database, embedder)
    with pytest.raises(Unavailable, match="worker run"):
        await search.search("kickflip")
    await ensure_pin(database, OPENAI_SMALL)
    with pytest.raises(PinMismatch, match="text-embedding-3-small"):
        await search.search("kickflip")


async def test_atlas_where_there_is_none(database: AsyncDatabase[Row], embedder: LocalClient) -> None:
    """VECTOR_SEARCH=atlas against a server without it is a configuration fault, not an empty answer."""
    await _fill(database, embedder)
    with pytest.raises(ConfigurationFault, match="VECTOR_SEARCH"):
        await KnowledgeSearch(database, embedder, "atlas").search("kickflip")
    assert AtlasSearch(database["knowledge_chunks"], Pin(MINILM.name, 384)).name == "atlas"


async def test_a_switched_pin_is_followed(database: AsyncDatabase[Row], embedder: LocalClient) -> None:
    """A long-lived reader searches the new generation right after the switch, without a restart."""
    await _fill(database, embedder)
    search = KnowledgeSearch(database, embedder)
    assert len((await search.search("kickflip")).hits) == 5
    new = Pin(MINILM.name, 384, "knowledge_chunks_next", "knowledge_vec_next")
    await database[PINS].update_one({"_id": ACTIVE}, {"$set": new.as_row()})
    found = await search.search("kickflip")
    assert (found.hits, found.pin) == ((), new)


async def test_one_pin_is_created_however_many_try(database: AsyncDatabase[Row]) -> None:
    """Racing creators agree; an existing pin is left alone; a broken row is told."""
    assert await active_pin(database) is None
    pins = await asyncio.gather(*(ensure_pin(database, model) for model in [MINILM, OPENAI_SMALL] * 4))
    assert len(set(pins)) == 1
    assert await active_pin(database) == pins[0]
    await database[PINS].update_one({"_id": ACTIVE}, {"$set": {"dimensions": "wide"}})
    with pytest.raises(ConfigurationFault, match="no pin"):
        await active_pin(database)


def test_live_server(mongo_uri: str, tmp_path: Path) -> None:
    """A URI only when the process lives and its port answers, and only on loopback."""
    file = tmp_path / "server.json"
    assert live_server(tmp_path) is None
    file.write_text(json.dumps({"uri": mongo_uri, "pid": os.getpid()}))
    assert live_server(tmp_path) == mongo_uri
    assert find_target(None, "x", tmp_path) == Target(mongo_uri, "x", embedded=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for text in (
        json.dumps({"uri": mongo_uri, "pid": gone.pid}),
        json.dumps({"uri": mongo_uri, "pid": 2**70}),
        json.dumps({"uri": "mongodb://127.0.0.1:1/", "pid": os.getpid()}),
        json.dumps({"uri": "mongodb://example.com:27017/", "pid": os.getpid()}),
        json.dumps({"uri": mongo_uri}),
        "{",
        "[]",
        "",
    ):
        file.write_text(text)
        assert live_server(tmp_path) is None
    with pytest.raises(Unavailable, match="worker run --embedded"):
        find_target(None, "x", tmp_path)
    with pytest.raises(ConfigurationFault, match="ATLAS_URI"):
        find_target(None, "x", None)


def _brain(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "brain", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **environment},
    )


async def test_the_command(database: AsyncDatabase[Row], embedder: LocalClient, mongo_uri: str, tmp_path: Path) -> None:
    """`search` over an embedded database by its folder: JSON alone on stdout with --json, a table without."""
    await _fill(database, embedder)
    (tmp_path / "server.json").write_text(json.dumps({"uri": mongo_uri, "pid": os.getpid()}))
    where = ("--data", str(tmp_path))
    name = database.name
    json_words = ("search", "flick the board", "--json", "--sport", "skate", *where)
    done = await asyncio.to_thread(_brain, *json_words, ATLAS_DB=name)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["engine"], answer["pin"]["model"]) == ("exact", MINILM.name)
    first = answer["hits"][0]
    assert first["_id"] == "trickipedia/o:1/0"
    assert {"score", "docType", "sport", "title", "text", "url"} <= first.keys()
    assert first["sourceVersion"] == {"t": 7, "i": 1}
    table = await asyncio.to_thread(_brain, "search", "flick the board", "--embedded", *where, ATLAS_DB=name)
    assert table.returncode == 0
    assert "Kickflip" in table.stdout


@pytest.mark.parametrize(
    ("words", "environment", "code", "told"),
    [
        (("search",), {}, 64, "QUERY"),
        (("search", " "), {}, 64, "blank"),
        (("search", "x", "--limit", "99"), {}, 64, "--limit"),
        (("search", "x", "--doc-type", "poem"), {}, 64, "--doc-type"),
        (("search", "x", "--sport", "skateboardin"), {}, 64, "did you mean skateboarding"),
        (("search", "x", "--sport", "chess"), {}, 64, "known are"),
        (("serch",), {}, 64, "serch"),
        ((), {}, 64, "Commands"),
        (("search", "x"), {}, 78, "ATLAS_URI"),
        (("search", "x", "--data", "no-such-folder"), {}, 75, "worker run --embedded"),
        (("search", "x"), {"ATLAS_URI": DEAD_URI, "OPENROUTER_API_KEY": "k"}, 75, "127.0.0.1:1"),
    ],
)
def test_exit_codes(words: tuple[str, ...], environment: dict[str, str], code: int, told: str) -> None:
    """Each foreseen mistake has its code and says what to do, without a traceback and without a secret."""
    done = _brain(*words, **environment)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "pa55word" not in done.stderr
    assert not done.stdout
