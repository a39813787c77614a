"""Masks secrets in every text that leaves the process: log records, error texts, reasons.

Two nets: the configured secret values wherever they appear, and the shapes of secrets nobody configured (a URI with
credentials in a driver's error, say). httpx was seen to log the password and the key of a URL.
"""

import re
from collections.abc import Iterable
from typing import Final

MASK: Final = "***"
LONGEST_INPUT: Final = 16_384  # characters looked at; the rest is cut first, so that no pattern can run long
_SHORTEST_SECRET: Final = 4  # characters; masking a shorter one would garble every line and hide nothing

_SHAPES: Final = (
    # Credentials in a URI. With a colon the password may itself hold @ or /, so the last @ of the word ends it.
    # Bounded, since it is tried after every `://`: a long text of those would else take time by its square.
    (re.compile(r"(?<=://)[^\s/?#\"'@:]{0,256}:[^\s\"']{0,512}@"), f"{MASK}@"),
    (re.compile(r"(?<=://)[^\s/?#\"'@:]+@"), f"{MASK}@"),
    (re.compile(r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"), MASK),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {MASK}"),
    (
        re.compile(
            r"(?i)\b((?:[a-z]+[_-])?api[_-]?key|access[_-]?token|password|passwd|pwd|secret|authorization)"
            r"(\\?[\"']?\s*[=:]\s*\\?[\"']?)(?!\s|bearer\b|basic\b)[^\s\"'&,;}\\]+"
        ),
        rf"\1\2{MASK}",
    ),
)
_SECRET_NAME: Final = re.compile(r"(?i)(api[_-]?key|password|passwd|secret|authorization|credential|_uri$|^uri$)")


class Redactor:
    """Masks the given secret values and everything that looks like a secret."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: a URI is masked whole before the password inside it is.
        held = sorted({secret for secret in secrets if len(secret) >= _SHORTEST_SECRET}, key=len, reverse=True)
        self._values = re.compile("|".join(re.escape(secret) for secret in held)) if held else None

    def __call__(self, text: str) -> str:
        """The text without secrets, cut to `LONGEST_INPUT` characters."""
        text = text[:LONGEST_INPUT]
        if self._values is not None:
            text = self._values.sub(MASK, text)
        for shape, mask in _SHAPES:
            text = shape.sub(mask, text)
        return text

    def field(self, name: str, text: str) -> str:
        """The same for a named field, whose name alone may say that it is a secret."""
        return MASK if _SECRET_NAME.search(name) else self(text)
