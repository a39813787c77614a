"""Every shipped tool is told in schemas that all consumers take: by real validators, by rules, and by golden files."""

import copy
import enum
import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import jsonschema
import mcp_types
import pytest
from openai.lib._pydantic import _ensure_strict_json_schema  # pyright: ignore[reportPrivateUsage]
from pydantic import BaseModel, Field

from brain import cli
from brain.registry import Registry
from brain.schema import FORMATS, Format, Unfit, chat, fingerprint, mcp, parameters, rendered, responses, result
from brain.tool import AnyTool, Arguments, Id, Result, Words
from brain.tools import ALL_TOOLS
from tests.support import golden, processes
from tests.support.schema_rules import mistakes
from tests.support.tool_calls import tool

DRAFTS: Final = (jsonschema.Draft7Validator, jsonschema.Draft202012Validator)

every_tool = pytest.mark.parametrize("shipped", ALL_TOOLS, ids=[each.name for each in ALL_TOOLS])


class Kind(enum.Enum):
    """An enum class."""

    BIG = "big"
    SMALL = "small"


class Everything(Arguments):
    """Arguments of every kind that can be told."""

    query: Words = Field(description="What to look for.")
    limit: int = Field(default=5, ge=1, le=10, multiple_of=1)
    ratio: Annotated[float, Field(gt=0, lt=1)] | None = None
    kind: Kind | None = Field(default=None, description="How big.")
    exactly: Literal["one"] = "one"
    sports: list[Literal["bmx", "surfing"]] = Field(
        default_factory=list, max_length=3, json_schema_extra={"uniqueItems": True}
    )
    wants: bool = False
    list_id: Id | None = None


class Deep(BaseModel):
    """A model inside a model."""

    name: str
    inner: "Deep | None" = None


class Hit(Result):
    """A result inside a result."""

    web_url: str | None = None
    score: float


class Found(Result):
    """A nested result."""

    hits: list[Hit]
    success: Literal[True] = True
    by_sport: dict[str, int] | None = None
    anything: Any = None


def test_all_kinds_of_arguments_are_told_in_the_common_subset() -> None:
    """References inlined, bounds, titles and defaults left out."""
    assert parameters(Everything) == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer"},
            "ratio": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "kind": {
                "description": "How big.",
                "anyOf": [{"type": "string", "enum": ["big", "small"]}, {"type": "null"}],
            },
            "exactly": {"type": "string", "enum": ["one"]},
            "sports": {"type": "array", "items": {"type": "string", "enum": ["bmx", "surfing"]}},
            "wants": {"type": "boolean"},
            "list_id": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert mistakes(parameters(Everything), strict=False) == []


def test_in_strict_mode_all_are_required_and_those_with_a_default_may_be_null() -> None:
    """The registry reads null as left out."""
    told = parameters(Everything, strict=True)
    assert told["required"] == list(told["properties"])
    assert told["properties"]["query"] == {"type": "string", "description": "What to look for."}
    assert told["properties"]["limit"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert told["properties"]["kind"] == parameters(Everything)["properties"]["kind"]
    assert mistakes(told, strict=True) == []


@every_tool
def test_every_argument_is_described(shipped: AnyTool) -> None:
    """A model knows no more of it than its name and these words."""
    properties = parameters(shipped.arguments)["properties"]
    assert [name for name, each in properties.items() if not each.get("description")] == []


class Nested(Arguments):
    """Not flat."""

    where: Deep


class Numbers(Arguments):
    """An enum of numbers."""

    size: Literal[1, 2]


class Mixed(Arguments):
    """A free object."""

    filter: dict[str, str]


class Tuple(Arguments):
    """A list of several types by place."""

    pair: tuple[int, str]


@pytest.mark.parametrize("model", [Nested, Numbers, Mixed, Tuple])
def test_what_somebody_would_refuse_cannot_be_told(model: type[Arguments]) -> None:
    """With the reason, when the tools are rendered, not at a customer's."""
    with pytest.raises(Unfit):
        parameters(model)


def test_a_result_is_told_nested() -> None:
    """For MCP's clients."""
    told = result(Found)
    assert told["properties"]["hits"]["items"]["properties"]["webUrl"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }
    assert told["required"] == ["hits"]
    for draft in DRAFTS:
        draft.check_schema(told)
        checker: Any = draft(told)
        assert checker.is_valid({"hits": [{"score": 1.5}], "success": True, "bySport": {"bmx": 1}})
        assert not checker.is_valid({"hits": [{"score": "high"}]})


def test_a_recursive_result_cannot_be_told() -> None:
    """It would never end."""

    class Tree(Result):
        root: Deep

    with pytest.raises(Unfit, match="recursive"):
        result(Tree)


@pytest.mark.parametrize(
    ("effect", "idempotent", "destructive", "hints"),
    [
        ("read", True, False, (True, False, True, False)),
        ("read", False, False, (True, False, True, False)),
        ("write", True, False, (False, False, True, False)),
        ("write", False, True, (False, True, False, False)),
    ],
)
def test_all_four_hints_are_said(effect: str, idempotent: bool, destructive: bool, hints: tuple[bool, ...]) -> None:  # noqa: FBT001
    """Two of their defaults are the bad case."""
    told = mcp(tool(effect=effect, idempotent=idempotent, destructive=destructive))["annotations"]
    assert told == dict(zip(("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"), hints, strict=True))


def test_the_fingerprint_changes_with_the_words() -> None:
    """So that a log tells when a description was changed."""
    one, other = tool(), tool(arguments=Everything)
    assert fingerprint([one]) == fingerprint([tool()])
    assert (
        len({fingerprint(tools) for tools in ([], [one], [other], [one, tool(name="b")], [tool(name="b"), one])}) == 5
    )


def test_the_shipped_tools_make_a_registry() -> None:
    """Well formed, and each name once."""
    assert [each.name for each in Registry(ALL_TOOLS)] == [each.name for each in ALL_TOOLS]


@every_tool
def test_shipped_for_chat(shipped: AnyTool) -> None:
    """Nested; draft 7, as OpenRouter checks arguments."""
    told = chat(shipped)
    assert set(told) == {"type", "function"}
    assert set(told["function"]) == {"name", "description", "parameters"}
    assert mistakes(told["function"]["parameters"], strict=False) == []
    for draft in DRAFTS:
        draft.check_schema(told["function"]["parameters"])


@every_tool
def test_shipped_for_responses(shipped: AnyTool) -> None:
    """Flat and strict: OpenAI's own package finds nothing to change."""
    told = responses(shipped)
    assert set(told) == {"type", "name", "description", "parameters", "strict"}
    assert mistakes(told["parameters"], strict=True) == []
    changed = copy.deepcopy(told["parameters"])
    assert _ensure_strict_json_schema(changed, path=(), root=changed) == told["parameters"]
    for draft in DRAFTS:
        draft.check_schema(told["parameters"])


@every_tool
def test_shipped_for_mcp(shipped: AnyTool) -> None:
    """The protocol's own types take it, and nothing of it is lost there."""
    told = mcp(shipped)
    kept = mcp_types.Tool.model_validate(told).model_dump(by_alias=True, exclude_none=True)
    assert kept == told
    for schema in (told["inputSchema"], told["outputSchema"]):
        assert schema["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(schema)


@every_tool
def test_an_absent_result_value_is_not_required(shipped: AnyTool) -> None:
    """Nothing is told as null: what may be null must have a default, or the promised result would not be kept."""
    assert list(_required_but_nullable(mcp(shipped)["outputSchema"], "")) == []


def _required_but_nullable(schema: Mapping[str, Any], place: str) -> list[str]:
    found = [
        f"{place}.{name}"
        for name in schema.get("required", ())
        if {"type": "null"} in schema["properties"][name].get("anyOf", ())
    ]
    inner = [*schema.get("properties", {}).items(), *enumerate(schema.get("anyOf", ()))]
    inner += [("[]", schema["items"])] if "items" in schema else []
    return [*found, *(each for name, child in inner for each in _required_but_nullable(child, f"{place}.{name}"))]


@pytest.mark.parametrize("form", FORMATS)
def test_golden(form: Format) -> None:
    """What a model is told changes on purpose only."""
    hint = "what models are told has changed: read the diff after `make golden`, and commit it"
    assert golden.path(form).read_text(encoding="utf-8") == golden.text(form), hint


@pytest.mark.parametrize("form", FORMATS)
def test_the_command_prints_them_without_database_or_key(form: Format) -> None:
    """One bare JSON array on stdout, nothing on stderr."""
    done = processes.command("tools", "--format", form, env=processes.environment(), module="brain")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == rendered(ALL_TOOLS, form)


def test_the_command_knows_the_formats() -> None:
    """The command line repeats the words, so that --help is quick."""
    assert cli.FORMATS == FORMATS
    assert processes.command("tools", "--format", "xml", env=processes.environment(), module="brain").code == 64
