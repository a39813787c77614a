"""`index ensure|status` as an operator meets it: on Atlas (a strict fake on the wire) and where there is no search."""

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from brain.knowledge.pin import ACTIVE, OPENAI_LARGE, OPENAI_SMALL, PINS, Pin
from brain.knowledge.search.index import definition
from brain.knowledge.search.vectors import binary
from tests.support.fake_mongod import Fail, FakeMongod
from tests.support.fake_mongod.search import FAILED, READY, State
from tests.support.processes import Finished, command, environment, eventually, free_port, worker

pytestmark = pytest.mark.slow

PIN = Pin(OPENAI_SMALL.name, OPENAI_SMALL.dimensions)


@pytest.fixture
def server() -> Generator[FakeMongod]:
    """A server with search and one good chunk."""
    with FakeMongod() as started:
        started.search.enabled = True
        good = {"model": PIN.model, "dimensions": PIN.dimensions, "embedding": binary(np.ones(1536, np.float32))}
        started.write(PIN.collection, {"_id": "t/o:1/full", **good})
        yield started


def asked(server: FakeMongod, *words: str) -> Finished:
    """The command before the fake."""
    settings = {"ATLAS_URI": server.uri, "ATLAS_DB": "fake", "OPENROUTER_API_KEY": "sk-or-secret-canary"}
    done = command("index", *words, env=environment(**settings))
    assert "Traceback" not in done.err
    assert "canary" not in done.out + done.err
    return done


def test_from_nothing_to_ready(server: FakeMongod) -> None:
    """Missing is told with 1 and the command that helps; `ensure` makes it, and then both say ready with 0."""
    before = asked(server, "status", "--json")
    assert before.code == 1
    (row,) = before.value["indexes"]
    assert (before.value["ok"], row["exists"], row["chunks"]) == (False, False, 1)
    assert "index ensure" in row["words"]
    made = asked(server, "ensure", "--json")
    assert made.code == 0
    assert (made.value["engine"], made.value["indexes"][0]["words"]) == ("atlas", "ready")
    assert server.search.indexes[PIN.collection, PIN.index].definition == definition(PIN)
    after = asked(server, "status", "--json")
    assert after.code == 0
    assert (after.value["indexes"][0]["indexed"], after.value["ok"]) == (1, True)
    assert "knowledge_vec" in asked(server, "status").out


def test_chunks_that_the_index_leaves_out(server: FakeMongod) -> None:
    """Ready, and still 1: those chunks are never found, and somebody must know."""
    server.write(PIN.collection, {"_id": "t/o:2/full", "embedding": binary(np.ones(384, np.float32))})
    server.write(PIN.collection, {"_id": "t/o:3/full"})
    done = asked(server, "ensure", "--json")
    assert done.code == 1
    (row,) = done.value["indexes"]
    assert (row["ready"], row["chunks"], row["indexed"]) == (True, 3, 1)
    assert row["withoutValidVector"] == {"missing": 1, "wrongType": 0, "wrongWidth": 1, "zero": 0}
    people = asked(server, "status")
    assert people.code == 1
    assert "verify --repair" in people.out


def test_another_definition(server: FakeMongod) -> None:
    """78, both widths and the option; with it the index is defined anew."""
    server.search.put(PIN.collection, PIN.index, definition(Pin("m", 384)))
    refused = asked(server, "ensure")
    assert refused.code == 78
    assert "384 dimensions, the pin 1536" in refused.err
    assert "--update" in refused.err
    assert asked(server, "ensure", "--update").code == 0
    assert server.search.indexes[PIN.collection, PIN.index].definition == definition(PIN)


def test_a_build_that_fails(server: FakeMongod) -> None:
    """78 at once: waiting would not mend it."""
    server.search.next_states = (FAILED,)
    done = asked(server, "ensure", "--json")
    assert done.code == 78
    assert done.value["error"]["type"] == "IndexUnusable"
    assert "FAILED" in done.value["error"]["message"]


def test_a_role_that_may_not(server: FakeMongod) -> None:
    """78, and not taken for a server without search."""
    server.script.always("createSearchIndexes", Fail(13))
    done = asked(server, "ensure", "--json")
    assert done.code == 78
    assert done.value["error"]["type"] == "Refused"


def test_a_stale_index(server: FakeMongod) -> None:
    """It answers, from what it knew: 1, by its status."""
    server.search.put(PIN.collection, PIN.index, definition(PIN), State("STALE"), READY)
    done = asked(server, "status", "--json")
    assert done.code == 1
    assert done.value["indexes"][0]["status"] == "STALE"


def test_check_config_says_it(server: FakeMongod) -> None:
    """A warning, and the command that helps, while there is none or it may not be looked at; 0 all the same."""
    settings = {"ATLAS_URI": server.uri, "ATLAS_DB": "fake", "OPENROUTER_API_KEY": "k"}
    env = environment(**settings, WORKER_METRICS_PORT=str(free_port()))
    missing = command("check-config", "--json", env=env)
    assert missing.code == 0
    assert any("index ensure" in sentence for sentence in missing.value["warnings"])
    server.search.put(PIN.collection, PIN.index, definition(PIN))
    ready = command("check-config", "--json", env=env)
    assert (ready.value["index"], [w for w in ready.value["warnings"] if "index" in w]) == ("ready", [])
    server.script.always("aggregate", Fail(13))
    hidden = command("check-config", "--json", env=env)
    assert (hidden.code, hidden.value["index"]) == (0, "not known")


def test_a_worker_that_begins_says_it(server: FakeMongod, tmp_path: Path) -> None:
    """One warning in its log, and it works: what it stores is found when the index is there."""
    env = environment(ATLAS_URI=server.uri, ATLAS_DB="fake", OPENROUTER_API_KEY="k")
    with worker(tmp_path, env) as running:

        def told() -> list[str]:
            return [line["message"] for line in running.lines() if line.get("action") == "index_not_ready"]

        (message,) = eventually(told, "the warning")
        assert "index ensure" in message
        running.until_ready()


def test_every_generation_has_its_own(server: FakeMongod) -> None:
    """A model that is built beside the active one: two indexes, each of its width, in one go."""
    beside = Pin(OPENAI_LARGE.name, OPENAI_LARGE.dimensions, "knowledge_chunks_large", "knowledge_vec_large")
    row = {"_id": ACTIVE, **PIN.as_row(), "beside": {**beside.as_row(), "role": "next"}}
    server.write(PINS, row)
    done = asked(server, "ensure", "--json")
    assert (done.code, [one["index"] for one in done.value["indexes"]]) == (0, [PIN.index, beside.index])
    assert {name: one.definition for (_, name), one in server.search.indexes.items()} == {
        PIN.index: definition(PIN),
        beside.index: definition(beside),
    }


def test_without_search_nothing_is_needed(tmp_path: Path) -> None:
    """The embedded server: 0, and the sentence that the exact engine serves."""
    env, folder = environment(), str(tmp_path / "data")
    done = command("index", "ensure", "--data", folder, env=env)
    assert done.code == 0
    assert "exact engine" in " ".join(done.out.split())
    told = command("index", "status", "--data", folder, "--json", env=env)
    assert (told.code, told.value["ok"], told.value["engine"]) == (0, True, "exact")
