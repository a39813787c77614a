"""No chunk is above its model's window, over all that is at hand; cl100k is counted as OpenAI's encoding counts."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from bson import json_util

from brain.knowledge.pin import MINILM, OPENAI_SMALL, Model
from brain.knowledge.tokens import counter_for
from tests.support.tools import NODE, node_package, tool
from tests.support.words import NOW
from worker.docs_sync import read_tree
from worker.model import DocKey, Document, Part
from worker.pipeline.shape import chunk_limit
from worker.sources.registry import SOURCES
from worker.sources.source import Setting

SAMPLE = Path(__file__).parents[2] / "deploy" / "sample"
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
FILES = ("coaching", "couch_videos", "spots", "events", "riders")
HERE = [pytest.param(SAMPLE, id="sample")]
ALL = [
    *HERE,
    pytest.param(
        CORPUS,
        id="corpus",
        marks=[pytest.mark.slow, pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is absent")],
    ),
]


def documents(root: Path) -> Iterator[tuple[str, Document]]:
    """Every document of the sample, or of the corpus."""
    for tree in [root / "docs"] if root == SAMPLE else sorted((root / "docs").iterdir()):
        for page in read_tree(tree, ("**",), tree.name, "/docs").pages:
            yield "docs", page.as_row(NOW)
    for file in sorted(root.glob("trickipedia/*.json")):
        for row in cast("list[Document]", json_util.loads(file.read_text("utf-8"))):
            yield "trickipedia", row
    for name in FILES if root == SAMPLE else ():
        for row in cast("list[Document]", json_util.loads((root / f"{name}.json").read_text("utf-8"))):
            yield name, row


def parts(root: Path, model: Model) -> list[Part]:
    """Every chunk of every visible document under this model."""
    tokens = counter_for(model)
    found = list(documents(root))
    tricks = {DocKey.of("trickipedia", row["_id"]): row for name, row in found if name == "trickipedia"}
    setting = Setting(NOW, tokens, chunk_limit(tokens), tricks)
    return [part for name, row in found for part in SOURCES[name].shape(row, setting).parts]


@pytest.mark.parametrize("model", [MINILM, OPENAI_SMALL])
@pytest.mark.parametrize("root", ALL)
def test_no_chunk_is_above_the_window(root: Path, model: Model) -> None:
    """Counted with the model's own tokenizer, special tokens included: what is sent is what is read."""
    counter = counter_for(model)
    counts = sorted(counter.count(part.text) for part in parts(root, model))
    assert len(counts) > 150
    assert counts[-1] <= min(512, model.window)


@pytest.mark.parametrize("root", ALL)
def test_counts_are_those_of_the_true_encoding(root: Path) -> None:
    """Every chunk, counted again by `gpt-tokenizer`, another implementation of cl100k: equal, or above by a cut run."""
    node_package("gpt-tokenizer")
    program = (
        "const {encode} = await import('gpt-tokenizer/encoding/cl100k_base');"
        "const {text} = await import('node:stream/consumers');"
        "console.log(JSON.stringify(JSON.parse(await text(process.stdin)).map("
        "t => encode(t, {disallowedSpecial: new Set()}).length)))"
    )
    texts = [part.text for part in parts(root, OPENAI_SMALL)]
    texts += [
        "<|endoftext|> is text",
        "naïve café 滑板 🏂 👩‍👩‍👧",
        "\t\n  x \r\n",
        "I'll've DON'T 12345.678e-9",
        "https://a.example/?b=c&d",
    ]
    done = subprocess.run(
        [tool("node"), "--input-type=module", "-e", program],
        cwd=NODE, input=json_util.dumps(texts), capture_output=True, text=True, check=True,
    )  # fmt: skip
    true = cast("list[int]", json_util.loads(done.stdout))
    counter = counter_for(OPENAI_SMALL)
    for text, count in zip(texts, true, strict=True):
        run = max(map(len, text.split()), default=0)
        assert counter.count(text) == count or (run > 128 and count < counter.count(text) <= count * 1.05), text[:200]
