"""Embedding clients: texts in, vectors out. One port, one file a provider."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from brain.knowledge.chunk import Vector
from brain.knowledge.pin import Model

Purpose = Literal["document", "query"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call used: tokens as the provider reports them, and US dollars where it reports a price.

    `twice`: the request had to be sent again within the call, so it may be on the bill twice.
    """

    tokens: int = 0
    cost_usd: float | None = None
    twice: bool = False


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of one call, in the order of its texts."""

    vectors: tuple[Vector, ...]
    usage: Usage = field(default_factory=Usage)


class EmbeddingClient(Protocol):
    """One model behind one endpoint (or in this process). Does not retry: the caller owns the retry budget."""

    @property
    def model(self) -> Model:
        """The exact model whose vectors come back."""
        ...

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Embed the texts in one request.

        Raises Throttled, Unreachable, Unavailable or Malformed (try again), Poison (one of these texts can never work;
        with several texts the caller bisects), Refused or PinMismatch (a person must act).
        """
        ...

    async def close(self) -> None:
        """Give back connections and threads."""
        ...
