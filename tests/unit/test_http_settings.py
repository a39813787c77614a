"""Addresses and keys that the HTTP seam refuses before anything is sent."""

import pytest

from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.http import HttpClient
from brain.knowledge.pin import OPENAI_SMALL


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/api/v1",
        "ftp://127.0.0.1/",
        "https://user:pa55word@example.com/v1",
        "https://example.com/v1?key=pa55word",
        "https://",
        "http://[::1",
        "https://exa mple.com",
        "http://127.0.0.1:99999/",
        "",
    ],
)
def test_base_urls_that_are_refused(url: str) -> None:
    """Plain http beyond loopback, credentials, queries and nonsense are configuration faults that quote no secret."""
    with pytest.raises(ConfigurationFault) as caught:
        HttpClient(url)
    assert "pa55word" not in str(caught.value)


def test_a_key_with_a_line_break_is_refused() -> None:
    """A pasted line break would split the header."""
    with pytest.raises(ConfigurationFault, match="line break") as caught:
        OpenRouterClient(OPENAI_SMALL, "sk-secret\n", "https://example.com/v1")
    assert "secret" not in str(caught.value)
