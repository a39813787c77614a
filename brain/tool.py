"""What a tool is: a name, a pydantic model of its arguments, one of its result, and a handler.

A tool is defined once, in `brain/tools`, and used by the tool loop, the bridge and MCP alike. Who asks comes from the
caller, in the context, never from the arguments: those are a model's words.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Generic, Literal, Protocol, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.knowledge.domain.clean import one_line
from brain.knowledge.search.service import Found

Scope = Literal["public", "user"]
Effect = Literal["read", "write"]

LONGEST_WORDS: Final = 200
"""Characters of a name, a query or a title in an argument; longer ones are refused, not cut."""


def _plain(text: str) -> str:
    """The text as a reader sees it, on one line; ValueError where they see none."""
    plain = one_line(text)
    if not any(char.isprintable() and char != " " for char in plain):
        message = "it holds nothing that a reader sees"
        raise ValueError(message)
    return plain


Words = Annotated[
    str,
    StringConstraints(strict=True, strip_whitespace=True, min_length=1, max_length=LONGEST_WORDS),
    AfterValidator(_plain),
]
"""A short text from a model, without markup and on one line; never blank, because an empty pattern matches all."""

Id = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, to_lower=True, pattern=r"^[0-9a-fA-F]{24}$")]
"""An ObjectId in hex; one spelling of it, so that equal arguments are equal."""


class Arguments(BaseModel):
    """The base of every argument model: unknown names are refused, and a user id is never among them."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class Coordinates(Arguments):
    """The base of arguments that may name a place on the map: both coordinates or neither."""

    latitude: float | None = Field(default=None, ge=-90, le=90, description="degrees north, with longitude")
    longitude: float | None = Field(default=None, ge=-180, le=180, description="degrees east, with latitude")

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.latitude is None) != (self.longitude is None):
            message = "give latitude and longitude, or neither"
            raise ValueError(message)
        return self


class Result(BaseModel):
    """The base of every result model: camelCase keys on the wire, absent values left out."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        hide_input_in_errors=True,
    )


class Knowledge(Protocol):
    """Search in the chunks, as `KnowledgeSearch` does."""

    async def search(self, query: str, sport: str | None = None, doc_type: str | None = None, limit: int = 5) -> Found:
        """The nearest chunks; raises ValueError and KnowledgeError."""
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a handler works with, given by the caller.

    `user_id` is the rider (24 hex characters, authenticated by the caller), `companion_id` the speaking companion's
    user id, `turn_id` names the turn for exactly-once writes, `origin` prefixes links (`https://…`, or empty),
    `session` is the transaction that a write belongs to: every operation of a write handler passes it on.
    """

    database: AsyncDatabase[Row]
    knowledge: Knowledge
    now: Callable[[], datetime]
    user_id: str | None = None
    companion_id: str | None = None
    turn_id: str | None = None
    origin: str = ""
    session: AsyncClientSession | None = None

    @property
    def rider(self) -> str:
        """The rider's id, in a tool of scope `user`, which the registry runs for nobody else."""
        if self.user_id is None:
            message = "a tool of scope user ran without a user"
            raise RuntimeError(message)
        return self.user_id


@dataclass(frozen=True, slots=True)
class Card:
    """Rich content beside a reply: a type that the app knows, and its data (`_id` as text, numbers as numbers)."""

    type: str
    data: Mapping[str, object]


A = TypeVar("A", bound=Arguments)
R = TypeVar("R", bound=Result)


def no_cards(_result: Any) -> Sequence[Card]:  # noqa: ANN401 any tool's result
    """For tools that show nothing."""
    return ()


def no_links(_result: Any) -> Sequence[str]:  # noqa: ANN401 any tool's result
    """For tools that lead nowhere outside of the site."""
    return ()


def remarks(*told: str | None) -> str | None:
    """What a model should know beside a result, as one message; None when there is nothing."""
    return "; ".join(filter(None, told)) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[A, R]):
    """One tool. `seconds` bounds a call, `most_bytes` its result as JSON text in UTF-8.

    `links` are the addresses outside of the site that a reply may show after this call: those of curated fields (a
    tutorial's, an event's registration), never out of free text. `destructive` is a write that overwrites or removes.
    """

    name: str
    description: str
    arguments: type[A]
    result: type[R]
    handler: Callable[[ToolContext, A], Awaitable[R]]
    cards: Callable[[R], Sequence[Card]] = no_cards
    links: Callable[[R], Sequence[str]] = no_links
    scope: Scope = "public"
    effect: Effect = "read"
    idempotent: bool = True
    destructive: bool = False
    seconds: float = 10.0
    most_bytes: int = 16_384


AnyTool = Tool[Any, Any]
"""Any tool, where its arguments and its result do not matter."""
