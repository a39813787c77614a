"""What can go wrong in a call of the fake embedder: the orders, and the wrong answers themselves."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any


@cache
def gzip_bomb() -> bytes:
    """About 128 KB that unpack to 128 MB of blanks; made piece by piece, so that the maker's own memory stays small."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    mebibyte = b" " * (1 << 20)
    return b"".join([*(packer.compress(mebibyte) for _ in range(128)), packer.flush()])


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong in one call.

    kind: `status` (status, headers, body) · `body` (a 200 with this body) · `patch` (the right answer with `change`
    applied: one of drop, extra, narrow, nan, infinite, huge, zero, text, reverse, same_index, model, no_model,
    no_usage) · `reset_before` · `reset_inside` · `reset_after` (all was sent) · `short` (content-length 100, 5 bytes) ·
    `stall_accept` · `stall_headers` · `stall_body` · `drip` (`size` bytes each `seconds`) · `endless` · `gzip` (the
    right answer, packed) · `gzip_bomb` · `big_header` · `slow` (wait, then answer well) · `poison` (`status`, or 400,
    when any text contains `word`, else a right answer) · `void` (a vector of zeros for each text that contains `word`)
    · `cap` (400 above so many `tokens`, which are words here) · `limited` (429 with `Retry-After` beyond so many
    `tokens` or `requests` in any `per` seconds; the others are answered after `seconds`).
    """

    kind: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str = ""
    change: str = ""
    seconds: float = 0.05
    word: str = ""
    tokens: int = 0
    requests: int = 0
    per: float = 60.0
    size: int = 1


_NUMBERS: dict[str, object] = {"nan": float("nan"), "infinite": float("inf"), "huge": 1e300, "text": "1.0"}


def apply(change: str, answer: dict[str, Any]) -> None:
    """Make one thing wrong in a right answer."""
    data = answer["data"]
    if change in _NUMBERS:
        data[0]["embedding"][0] = _NUMBERS[change]
    elif change in {"drop", "extra"}:
        answer["data"] = data[:-1] if change == "drop" else [*data, {**data[0], "index": len(data)}]
    elif change in {"narrow", "zero"}:
        vector = data[0]["embedding"]
        data[0]["embedding"] = vector[:-1] if change == "narrow" else [0] * len(vector)
    elif change == "reverse":
        data.reverse()
    elif change == "same_index":
        data[-1]["index"] = 0
    elif change in {"model", "no_model"}:
        answer["model"] = "openai/another-model" if change == "model" else None
    elif change == "no_usage":
        answer["usage"] = None
