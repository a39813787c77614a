"""`python -m brain call`: a tool as a model would be told it, from a terminal; the log of a call on stderr."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from pymongo import MongoClient

from brain.cards import MOST_OF_A_TYPE
from brain.knowledge.pin import ACTIVE, MINILM, OPENAI_SMALL, PINS, Pin
from tests.support.processes import Finished, command, environment
from tests.support.tool_world import BOT, JUNO, LOTTE, MIKA, SAM, sample_id, sample_rows

Run = Callable[..., Finished]

TO_A_LIST_OF_MIKA: Final = json.dumps({"trick_name": "x", "list_id": sample_id("73", 1)})


@pytest.fixture
def run(mongo_uri: str, database_name: str) -> Run:
    """The command over the sample."""
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        for name, rows in sample_rows().items():
            client[database_name][name].insert_many(rows)

    def call(*words: str, **settings: str) -> Finished:
        env = environment(ATLAS_URI=mongo_uri, ATLAS_DB=database_name, **settings)
        return command("call", *words, env=env, module="brain")

    return call


def logged(done: Finished) -> list[dict[str, Any]]:
    """The lines of the log."""
    return [json.loads(line) for line in done.err.splitlines()]


def test_what_a_model_would_be_told(run: Run) -> None:
    """One JSON value on stdout, one line on stderr that tells the call and not its arguments."""
    done = run("search_spots", '{"query": "burnside"}', "--json")
    assert done.code == 0, done.err
    assert [hit["name"] for hit in done.value["data"]["results"]] == ["Burnside Yard Bowls"]
    assert done.value["cards"][0]["type"] == "spot_card"
    (line,) = logged(done)
    assert (line["action"], line["tool"], line["outcome"], line["user"]) == ("tool_call", "search_spots", "ok", None)
    assert line["ms"] > 0
    assert "burnside" not in done.err


def test_arguments_are_logged_on_request(run: Run) -> None:
    """BRAIN_LOG_ARGUMENTS=1."""
    done = run("search_spots", '{"query": "burnside"}', BRAIN_LOG_ARGUMENTS="1")
    assert '"query":"burnside"' in logged(done)[0]["arguments"]


def test_a_turn_that_is_repeated_writes_once(run: Run, mongo_uri: str, database_name: str) -> None:
    """In another process."""
    words = ("create_tricklist", '{"title": "Winter"}', "--user", MIKA, "--turn", "t1")
    answers = [run(*words, "--json").value["data"] for _ in range(2)]
    assert answers[0] == answers[1]
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        assert client[database_name]["tricklists"].count_documents({"name": "Winter"}) == 1


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("search_spot", "{}"), 64, "did you mean search_spots?"),
        (("search_spots", "{"), 64, "no JSON"),
        (("search_spots", '{"query": {"$gt": ""}}'), 64, "query: input should be a valid string"),
        (("my_progress",), 64, "signed in"),
        (("my_progress",), 64, "--user ID"),
        (("my_progress", "{}", "--user", "kari"), 64, "24 hexadecimal digits"),
        (("my_progress", "{}", "--companion", "kaori"), 64, "24 hexadecimal digits"),
        (("remember_user_info", '{"fact": "Rides goofy"}', "--user", JUNO), 64, "--companion ID"),
        (("search_knowledge", '{"query": "kickflip"}'), 75, "being built"),
        (("add_trick_to_list", TO_A_LIST_OF_MIKA, "--user", JUNO), 1, "not the rider's"),
    ],
)
def test_each_failure_has_its_exit_code(run: Run, words: tuple[str, ...], code: int, told: str) -> None:
    """And its sentence."""
    done = run(*words)
    assert (done.code, told in done.out + done.err) == (code, True), done


def test_a_rider_from_the_environment(run: Run) -> None:
    """BRAIN_USER_ID; one that is no id is a mistake, not nobody."""
    assert run("my_progress", BRAIN_USER_ID=MIKA).code == 0
    done = run("search_spots", '{"query": "burnside"}', BRAIN_USER_ID="abc")
    assert (done.code, "BRAIN_USER_ID" in done.err) == (78, True), done


def test_a_companion_that_speaks(run: Run, mongo_uri: str, database_name: str) -> None:
    """Remembers, as one does in a chat."""
    done = run("remember_user_info", '{"fact": "Rides goofy"}', "--user", LOTTE, "--companion", BOT)
    assert done.code == 0, done
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        stored = client[database_name]["companion_profiles"].find_one({"userId": LOTTE, "companionId": BOT})
    assert stored is not None
    assert stored["memory"]["knownFacts"] == ["Rides goofy"]


def test_the_cards_are_those_that_a_reply_would_show(run: Run) -> None:
    """At most four of a type."""
    done = run("recommend_next_trick", '{"sport": "skateboarding"}', "--user", SAM, "--json")
    assert len(done.value["data"]["recommendations"]) > MOST_OF_A_TYPE
    assert [card["type"] for card in done.value["cards"]] == ["trick_card"] * MOST_OF_A_TYPE


@pytest.mark.parametrize("settings", [{}, {"EMBEDDING_PROVIDER": "local", "VECTOR_SEARCH": "atlas"}])
def test_a_wrong_setting_has_the_code_for_settings(
    run: Run, mongo_uri: str, database_name: str, settings: dict[str, str]
) -> None:
    """No key, no vector search on this server: the model hears `unavailable`, who types it 78, as `search` says."""
    pin = MINILM if settings else OPENAI_SMALL
    with MongoClient[dict[str, Any]](mongo_uri) as client:
        row = Pin(pin.name, pin.dimensions).as_row()
        client[database_name][PINS].insert_one({"_id": ACTIVE, **row})
    done = run("search_knowledge", '{"query": "kickflip"}', "--json", **settings)
    assert (done.code, done.value["error"]["code"]) == (78, "unavailable"), done
