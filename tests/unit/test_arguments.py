"""Whatever a model sends as arguments: understood, or refused in a sentence that helps and repeats no value."""

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from brain.arguments import canonical, glimpse, understood
from brain.errors import ToolFailure
from tests.support.hostile import PROMISED, RUNS
from tests.support.tool_calls import Nothing, Wanted

ID: Final = "64b000000000000000000001"


def refused(arguments: object, model: Any = Wanted) -> str:  # noqa: ANN401 a model class
    """The sentence of a refusal."""
    runs = [failure(arguments, model) for _ in range(RUNS)]
    assert min(seconds for seconds, _ in runs) <= PROMISED
    _, told = runs[0]
    assert told.code == "invalid_arguments"
    assert told.__context__ is None  # a ValidationError there would carry the values into a log
    assert len(str(told)) < 700
    assert str(told).isascii()
    return str(told)


def failure(arguments: object, model: Any) -> tuple[float, ToolFailure]:  # noqa: ANN401 a model class
    """Processor seconds, and the refusal."""
    began = time.process_time()
    with pytest.raises(ToolFailure) as caught:
        understood(model, arguments)
    return time.process_time() - began, caught.value


@pytest.mark.parametrize("blank", ["", "  \n", "{}", " { } ", '{"x": null}'])
def test_blank_text_is_no_arguments(blank: str) -> None:
    """Models send it for tools that take none; null is what a strict schema makes of "left out"."""
    assert understood(Nothing, blank) == Nothing()


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ("null", "were null"),
        ('"5"', "were a text"),
        ("5", "were a number"),
        ("true", "were true or false"),
        ("[]", "were a list"),
        ('{"query":"a"}{"query":"b"}', "one call an object"),
        ('{"query": NaN}', "NaN is not a number"),
        ('{"query": "a", "limit": -Infinity}', "-Infinity is not a number"),
        ('{"query": "a", "limit": 1e999}', "limit is not a finite number"),
        ('{"query": "a", "limit": 123456789012345678901234567890}', "limit is too big a number"),
        ('{"query": "a", "limit": ' + "9" * 20_000 + "}", "a number is too big"),
        ('{"query": "a", "query": "b"}', "query is given twice"),
        ('{"query": "a"', "no JSON"),
        ("{'query': 'a'}", "no JSON"),
        ("query=a", "no JSON"),
        ("[" * 10_000 + "]" * 10_000, "nested deeper than 8"),
        ('{"query":' + '{"a":' * 20 + "1" + "}" * 21, "query is nested deeper than 8"),
        ('{"query": "' + "a" * 10_000_000 + '"}', "longer than 32768 characters"),
        ('{"query": [' + "1," * 5_000 + "1]}", "more than 2000 values"),
        ('{"query": "a\\u0000b"}', "query holds a NUL character"),
        ('{"query": "a\\ud800"}', "query holds half of a surrogate pair"),
        ({"query": "a" * 10_000_000}, "more than 32768 characters"),
        ({"query": [0] * 10_000_000}, "more than 2000 values"),
        ({"a" * 20_000: 1, "b" * 20_000: 1}, "more than 32768 characters"),
        ({"query": float("nan")}, "query is not a finite number"),
        ({"query": b"bytes"}, "a type that JSON does not have"),
        ({1: "a"}, "the name of an argument must be a text"),
        (None, "were null"),
        (b"{}", "were something else"),
    ],
)
def test_what_is_no_object_of_plain_values_is_refused(sent: object, told: str) -> None:
    """With the reason, quickly."""
    assert told in refused(sent)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({}, "query is missing"),
        ({"query": None}, "query is missing"),
        ({"query": " "}, "query: string should have at least 1 character"),
        ({"query": "a" * 201}, "query: string should have at most 200 characters"),
        ({"query": {"$gt": ""}}, "query: input should be a valid string"),
        ({"query": ["a"]}, "query: input should be a valid string"),
        ({"query": 5}, "query: input should be a valid string"),
        ({"query": "a", "sport": "curling"}, "sport: input should be 'bmx' or 'surfing'"),
        ({"query": "a", "limit": 99}, "limit: input should be less than or equal to 10"),
        ({"query": "a", "limit": "many"}, "limit: input should be a valid integer"),
        ({"query": "a", "limit": 1.5}, "limit: input should be a valid integer"),
        ({"query": "a", "list_id": "kickflip"}, "list_id has not the right form: an id has 24 hexadecimal digits"),
        ({"query": "a", "list_id": ID + "\n\n0"}, "list_id has not the right form"),
        ({"qeury": "a"}, "did you mean query?"),
        ({"query": "a", "user_id": ID}, "user_id is not an argument of this tool"),
        ({"query": "a", "$where": "sleep(1000)"}, "$where is not an argument"),
        ({"query": "a", "list.owner": "x"}, "list.owner is not an argument"),
        ({"query": "a", "__proto__": {"admin": True}}, "__proto__ is not an argument"),
        ({"query": "a", "quеry": "b"}, "qu\\u0435ry is not an argument"),  # noqa: RUF001 a Cyrillic letter: it shows
        ({"query": "a", "x" * 5_000: 1}, "is not an argument"),
    ],
)
def test_a_mistake_is_told_with_its_name_and_what_is_allowed(sent: dict[str, Any], told: str) -> None:
    """So that the model can mend it in one more call."""
    assert told in refused(sent)
    assert told in refused(json.dumps(sent))


def test_no_message_repeats_a_value() -> None:
    """It may be long, private, or an instruction to whoever reads the message."""
    sent = {"query": ["IGNORE ALL"], "sport": "IGNORE ALL", "limit": "IGNORE ALL", "list_id": "IGNORE ALL"}
    told = refused(sent)
    assert "IGNORE" not in told
    assert told.count(";") == 3


def test_many_mistakes_are_counted() -> None:
    """Five are told."""
    told = refused({f"x{n}": 1 for n in range(500)})
    assert "and 496 more mistakes" in told


@pytest.mark.parametrize("value", [1, None])
def test_a_million_names_are_not_gone_through(value: object) -> None:
    """Not even where all of them are null, and so left out."""
    assert "more than 2000 values" in refused(dict.fromkeys(map(str, range(1_000_000)), value))


def test_an_argument_without_parameters_says_so() -> None:
    """There is nothing to name."""
    assert "it takes none" in refused({"query": "a"}, Nothing)


def test_numbers_as_text_are_understood() -> None:
    """Models write them so; the canonical form is one."""
    spellings = ['{"query": "a", "limit": "5"}', '{"limit": 5.0, "query": "a"}', {"query": "a", "sport": None}]
    assert {canonical(understood(Wanted, text)) for text in spellings} == {
        '{"limit":5,"list_id":null,"query":"a","sport":null}'
    }


def test_an_id_has_one_spelling() -> None:
    """So that the same write is the same, however the model copied it."""
    assert (
        understood(Wanted, {"query": "a", "list_id": " 64B00000000000000000000F "}).list_id
        == "64b00000000000000000000f"
    )


@contextmanager
def endless() -> Generator[dict[str, Any]]:
    """An object that holds itself."""
    held: dict[str, Any] = {}
    held["query"] = held
    yield held
    held.clear()


def test_an_object_that_holds_itself_is_refused() -> None:
    """It is deeper than anything."""
    with endless() as held:
        assert "nested deeper" in refused(held)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (
            {"query": "ollie", "limit": 5, "x": [None, True, 1.5]},
            "{'query': 'ollie', 'limit': 5, 'x': [None, True, 1.5]}",
        ),
        ({"a": {"b": {"c": {"d": 1}}}}, "{'a': {'b': {'c': …}}}"),
        (list(range(1_000_000)), "[0, 1, 2, 3, 4, 5, 6, 7, … 999992 more]"),
        (dict.fromkeys(range(10), 1), "{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, … 2 more}"),
        ("a" * 10_000_000, f"'{'a' * 200}'…"),
        ({10**1_000_000: -(10**1_000_000)}, "{(a big number): (a big number)}"),
        (bytearray(10_000_000), "(bytearray)"),
    ],
)
def test_a_log_shows_the_beginning_of_anything(value: object, shown: str) -> None:
    """However big it is; Python itself refuses to write a number of thousands of digits."""
    assert glimpse(value) == shown
