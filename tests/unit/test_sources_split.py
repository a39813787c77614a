"""Filling chunks: none above the limit, nothing lost, heads and frames repeated."""

import pytest

from brain.knowledge.pin import MINILM
from brain.knowledge.tokens import counter_for
from tests.support.words import NOW, words
from worker.errors import UnreadableDocument
from worker.sources.source import Setting
from worker.sources.split import MOST_CHARACTERS, Block, fill, head_line


def test_blocks_that_fit_stay_together() -> None:
    """One text, the head first, glue between."""
    assert fill("Head", [Block("one"), Block("two", "\n"), Block(" ")], words()) == ["Head\n\none\ntwo"]


def test_a_long_block_is_cut_at_sentences() -> None:
    """Every part starts with the head, ends at a sentence, and no word is lost."""
    text = " ".join(f"This is sentence number {number}." for number in range(40))
    parts = fill("Head", [Block(text)], words(limit=20))
    assert all(part.startswith("Head\n\n") and part.endswith(".") for part in parts)
    assert " ".join(part.removeprefix("Head\n\n") for part in parts) == text


def test_openers_and_closers_are_repeated() -> None:
    """Split code is fenced in every part."""
    code = "\n".join(f"line {number}" for number in range(60))
    parts = fill("Head", [Block(code, opener="```js\n", closer="\n```")], words(limit=30))
    assert len(parts) > 3
    assert all(part.count("```") == 2 for part in parts)


def test_a_long_word_is_broken_and_text_without_spaces_fits() -> None:
    """The real tokenizer, a word of 100,000 characters: bounded parts, every character there."""
    setting = Setting(NOW, counter_for(MINILM), 256)
    parts = fill("Head", [Block("ab" * 50_000)], setting)
    assert all(setting.tokens.count(part) <= 256 for part in parts)
    assert sum(part.count("a") for part in parts) == 50_000 + len(parts)  # "Head" has one too


def test_too_much_text_is_refused_at_once() -> None:
    """Above the bounds the document is unreadable instead of cut."""
    with pytest.raises(UnreadableDocument, match="characters"):
        fill("Head", [Block("a" * (MOST_CHARACTERS + 1))], words())
    with pytest.raises(UnreadableDocument, match="chunks"):
        fill("Head", [Block("word " * 200_000)], words(limit=16))


def test_the_head_takes_a_third_at_most() -> None:
    """A long head is shortened and says so."""
    line, shortened = head_line("word " * 100, words(limit=30))
    assert shortened
    assert len(line.split()) <= 10
    assert head_line("Short", words(limit=30)) == ("Short", False)
