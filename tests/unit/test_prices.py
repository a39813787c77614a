"""The price table: what a number of tokens costs."""

import pytest

from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL
from brain.knowledge.prices import usd
from brain.knowledge.settings import KNOWN_MODELS


def test_a_million_tokens_cost_what_the_makers_page_says() -> None:
    """Figures of the pages that the table names."""
    assert usd(OPENAI_SMALL.name, 1_000_000) == pytest.approx(0.02)
    assert usd(OPENAI_LARGE.name, 500_000) == pytest.approx(0.065)


def test_a_model_in_this_process_is_free_and_an_unknown_ones_price_is_not_guessed() -> None:
    """Nobody can be billed for what nobody asked for a price."""
    assert usd(MINILM.name, 10**9) == 0.0
    assert usd("maker/unheard-of", 1) is None


def test_every_model_that_the_settings_know_has_a_price() -> None:
    """So that a budget works with each of them."""
    assert all(usd(name, 1) is not None for name in KNOWN_MODELS)
