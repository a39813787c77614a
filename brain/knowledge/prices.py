"""What embedding costs: US dollars a million input tokens, by the model's exact name.

The fallback where a provider reports no `usage.cost`, and the estimate before a call. OpenRouter passes the maker's
price on unchanged. Sources, read in November 2026: developers.openai.com/api/docs/models/text-embedding-3-small (0.02),
…/text-embedding-3-large (0.13), …/text-embedding-ada-002 (0.10), and openrouter.ai/<model> (the same figures). A model
that runs in this process costs nothing.
"""

from collections.abc import Mapping
from typing import Final

from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL

USD_PER_MILLION_TOKENS: Final[Mapping[str, float]] = {
    MINILM.name: 0.0,
    OPENAI_SMALL.name: 0.02,
    OPENAI_LARGE.name: 0.13,
    "openai/text-embedding-ada-002": 0.10,
}


def usd(model: str, tokens: int) -> float | None:
    """What so many input tokens of a model cost in US dollars; None when its price is not known."""
    price = USD_PER_MILLION_TOKENS.get(model)
    return None if price is None else price * tokens / 1_000_000
