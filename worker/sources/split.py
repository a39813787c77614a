"""Filling chunks: blocks of text under a head line, none above the limit, nothing lost.

Tokens are counted with the pinned model's own tokenizer. A block is counted once while chunks are filled, and a
finished chunk once more, because the sum of two counts is no promise about the count of the two together.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from worker.errors import UnreadableDocument
from worker.sources.source import Setting

MOST_TOKENS: Final = 3_072_000
"""Tokens that a document's chunks may hold: 6,000 chunks of 512. A document of 10 MB is split, and
one that would take the worker's memory by itself is dead-lettered: 5,275 chunks of 1,536 floats took 180 MB."""
MOST_PARTS: Final = 12_000
"""Chunks that a document may have at most, however short they are."""
MOST_CHARACTERS: Final = 12_000_000
"""Characters a document's text may have: that many tokens at the usual four characters each."""
SMALL: Final = 64
"""Tokens; a shorter section or field joins the one before it, where both fit."""
LONGEST_WORD: Final = 512
"""Characters; a longer run without a space is broken into lines: tokenizers need quadratic time for one word."""
LONGEST_HEAD: Final = 400
"""Characters of the head line that is repeated on every part."""
_HEAD_SHARE: Final = 3  # the head takes at most a third of a chunk
_USUAL_CHARACTERS: Final = 4  # characters a token, the first guess where to cut
_LONG_WORD: Final = re.compile(rf"\S{{{LONGEST_WORD}}}(?=\S)")
_LONG_GAP: Final = re.compile(r"[^\S\n]{65,}")
_SENTENCE_END: Final = re.compile(r"[.!?…][\"')\]]*\s|[。！？]")  # noqa: RUF001 - the full stops of other scripts


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of text that is kept whole where it fits.

    `glue` stands between it and the block before it; `opener` and `closer` (a fence's marks, a table's head rows, with
    their line breaks) are repeated around every piece when it must be split. A block that `leads` (a heading) never
    ends a chunk where something follows it.
    """

    text: str
    glue: str = "\n\n"
    opener: str = ""
    closer: str = ""
    leads: bool = False

    @property
    def whole(self) -> str:
        """The text with its opener and closer."""
        return f"{self.opener}{self.text}{self.closer}"


def has_long_word(text: str) -> bool:
    """Whether the text holds a word that will be broken."""
    return _LONG_WORD.search(text) is not None


def tokens_of(text: str, setting: Setting) -> int:
    """How many tokens the model reads for this text, after its overlong words were broken."""
    return setting.tokens.count(_even(text))


def weight_of(blocks: Iterable[Block], setting: Setting) -> int:
    """The room that `fill` gives to these blocks: a little more than their tokens, as it counts them one by one."""
    least = setting.tokens.count("") - 1
    frames = ((block.text, block.opener + block.closer) for block in blocks)
    return sum(tokens_of(text, setting) - least for frame in frames for text in frame if text)


def head_line(text: str, setting: Setting) -> tuple[str, bool]:
    """The line that is repeated on every part, short enough, and whether it had to be shortened."""
    room = setting.limit // _HEAD_SHARE
    short = text[:LONGEST_HEAD]
    while short and setting.tokens.count(f"{short}…") > room:
        short = short[: len(short) * 3 // 4]
    return (text, False) if short == text else (f"{short.rstrip()}…", True)


def fill(head: str, blocks: Iterable[Block], setting: Setting) -> list[str]:
    """Texts of at most `setting.limit` tokens, each the head and as many blocks as fit, in order.

    `head` comes from `head_line`. Raises UnreadableDocument when there is more text than MOST_TOKENS.
    """
    blocks = [replace(block, text=_even(block.text)) for block in blocks if block.text.strip()]
    if sum(len(block.text) for block in blocks) > MOST_CHARACTERS:
        reason = f"more than {MOST_CHARACTERS} characters of text"
        raise UnreadableDocument(reason)
    return _Filler(head, setting).fill(blocks)


def most_parts(limit: int) -> int:
    """How many chunks of that many tokens a document may have."""
    return min(MOST_PARTS, MOST_TOKENS // limit)


class _Filler:
    """The work of `fill` for one head."""

    def __init__(self, head: str, setting: Setting) -> None:
        self._head = head
        self._limit = setting.limit
        self._count = setting.tokens.count
        self._special = self._count("")  # what the model adds to every text
        self._room = setting.limit - (self._count(f"{head}\n\n") if head else self._special)

    def fill(self, blocks: Sequence[Block]) -> list[str]:
        texts: list[str] = []
        group: list[tuple[Block, int]] = []
        used = 0
        for block in blocks:
            for piece, cost in self._pieces(block):
                if group and used + cost > self._room:
                    leading = _leading(group)
                    self._finish([member for member, _ in group[: len(group) - leading]], texts)
                    group = group[len(group) - leading :]
                    used = sum(size for _, size in group)
                group.append((piece, cost))
                used += cost
        if group:
            self._finish([member for member, _ in group], texts)
        return texts

    def _finish(self, group: Sequence[Block], texts: list[str]) -> None:
        """Write the group as one text, or as more where the counts of the blocks did not add up."""
        body = group[0].whole + "".join(block.glue + block.whole for block in group[1:])
        text = f"{self._head}\n\n{body}" if self._head else body
        if self._count(text) <= self._limit:
            texts.append(text)
        elif len(group) > 1:
            self._finish(group[: len(group) // 2], texts)
            self._finish(group[len(group) // 2 :], texts)
        elif len(group[0].text) > 1:
            front, back = _cut(group[0].text, len(group[0].text) // 2)
            self._finish([replace(group[0], text=front)], texts)
            self._finish([replace(group[0], text=back)], texts)
        else:
            reason = f"one character does not fit into {self._limit} tokens beside its head line"
            raise UnreadableDocument(reason)
        if len(texts) > (most := most_parts(self._limit)):
            reason = f"more than {most} chunks of {self._limit} tokens"
            raise UnreadableDocument(reason)

    def _pieces(self, block: Block) -> Iterable[tuple[Block, int]]:
        """The block in pieces that fit, each with its cost in tokens."""
        around = self._cost(block.opener + block.closer) if block.opener or block.closer else 0
        if around > self._room // 2:
            block, around = Block(block.whole, block.glue), 0
        room = max(self._room - around, 1)
        rest = block.text
        guess = room * _USUAL_CHARACTERS
        while rest:
            piece, cost, rest = self._take(rest, guess, room)
            guess = max(len(piece) * room // max(cost, 1), 1)
            if piece.strip():
                yield replace(block, text=piece.rstrip("\n")), cost + around

    def _take(self, text: str, guess: int, room: int) -> tuple[str, int, str]:
        """The longest front of the text that fits, roughly; its cost; the rest."""
        size = len(text) if len(text) <= 2 * guess else guess
        while True:
            front, rest = _cut(text, size)
            cost = self._cost(front)
            if cost <= room or len(front) <= 1:
                return front, cost, rest
            size = max(min(len(front) * room // cost, len(front) - 1), 1)

    def _cost(self, text: str) -> int:
        """Tokens of a text inside a chunk, the glue before it included."""
        return self._count(text) - self._special + 1


def _leading(group: Sequence[tuple[Block, int]]) -> int:
    """How many blocks at the end of the group only lead to the next one; 0 when it holds nothing else."""
    leading = 0
    while leading < len(group) and group[-1 - leading][0].leads:
        leading += 1
    return leading if leading < len(group) else 0


def _even(text: str) -> str:
    """The text with overlong words broken into lines and overlong gaps shortened."""
    return _LONG_WORD.sub("\\g<0>\n", _LONG_GAP.sub(" " * 64, text))


def _cut(text: str, size: int) -> tuple[str, str]:
    """The text in two, the front at most `size` long, cut at the best place in its second half.

    Best is a blank line, then a line's end, a sentence's end, a space; else the cut goes through a word.
    """
    if size >= len(text):
        return text, ""
    least = size // 2
    for mark in ("\n\n", "\n"):
        at = text.rfind(mark, least, size)
        if at > 0:
            return text[:at], text[at:].lstrip("\n")
    ends = [match.end() for match in _SENTENCE_END.finditer(text, least, size)]
    at = ends[-1] if ends else text.rfind(" ", least, size) + 1
    if at <= 0:
        at = max(size, 1)
    return text[:at].rstrip(" ") or text[:at], text[at:].lstrip(" ")
