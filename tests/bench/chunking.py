"""Documentation pages to chunks: how fast, beside another indexer; and how much an edit embeds again.

The pages are those of three real documentation trees in a corpus beside this repository; without it the benchmark says
so and measures nothing.
"""

import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import numpy as np
from bson import Timestamp

from brain.knowledge.pin import OPENAI_SMALL, Pin
from brain.knowledge.tokens import TokenCounter, counter_for
from tests.bench import cocoindex
from tests.bench.edits import KINDS, SILENT, Edit, edited
from tests.bench.report import Options, Report, percentile
from worker.docs_sync.page import DocsPage
from worker.docs_sync.tree import read_tree
from worker.model import Delta, DocKey, DocState, Shaped, StoredChunk
from worker.pipeline.diff import Target, diff
from worker.sources.docs import Docs
from worker.sources.source import Setting

CORPUS: Final = Path(__file__).parents[3] / "shared" / "corpus" / "docs"
_PIN: Final = Pin(OPENAI_SMALL.name, OPENAI_SMALL.dimensions)
_AT: Final = Timestamp(1, 1)
_NOTHING: Final = DocState()


def measure(options: Options) -> Report:
    """Both parts, where the corpus is."""
    report = Report("chunking")
    if not CORPUS.is_dir():
        report.notes.append(f"the corpus is not here ({CORPUS.name} beside the repository): nothing is measured")
        return report
    _speed(report, rounds=2 if options.quick else 5)
    if options.with_cocoindex:
        cocoindex.measure(report, CORPUS / "redux")
    else:
        report.notes.append("beside: CocoIndex 1.0.26 published 1,016 chunks, 0.7 s cold (--with-cocoindex runs it)")
    _identity(report, 40 if options.quick else 200)
    return report


class Chunker:
    """Shapes and compares pages as the pipeline does."""

    def __init__(self) -> None:
        self.tokens: TokenCounter = counter_for(OPENAI_SMALL)
        self._docs = Docs()
        self._target = Target(_PIN, self.tokens, {"docs": self._docs.chunker_version})
        self._setting = Setting(datetime(2026, 11, 30, tzinfo=UTC), self.tokens, 512)

    def shape(self, page: DocsPage) -> Shaped:
        """What the page says."""
        return self._docs.shape(page.as_row(self._setting.now), self._setting)

    def look(self, page: DocsPage, state: DocState = _NOTHING) -> Delta:
        """What must be written for it."""
        return diff(DocKey.of("docs", page.id), _AT, self.shape(page), state, self._target)


def stored(delta: Delta) -> DocState:
    """The state after a first delta was published."""
    chunks = tuple(
        StoredChunk(draft.id, draft.text_hash, draft.content_hash, _PIN.model, _PIN.dimensions) for draft in delta.write
    )
    return DocState(delta.ledger, chunks)


class Stopwatch:
    """Seconds of processor time, so that what else the machine does is not counted, and of the wall."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def read(self) -> tuple[float, float]:
        """Both, since it was made."""
        return time.process_time() - self._cpu, time.perf_counter() - self._wall


def _speed(report: Report, rounds: int) -> None:
    counter_for(OPENAI_SMALL).count("warm")  # the vocabulary is read once a process
    cold: list[tuple[float, float]] = []
    again: list[tuple[float, float]] = []
    skipped: list[tuple[float, float]] = []
    chunks = 0
    for _ in range(rounds):
        chunker = Chunker()  # with nothing remembered
        watch = Stopwatch()
        pages = _pages("redux")
        deltas = [chunker.look(page) for page in pages]
        for delta in deltas:
            _no_op([draft.text for draft in delta.write])
        cold.append(watch.read())
        chunks = sum(len(delta.write) for delta in deltas)
        states = [stored(delta) for delta in deltas]
        watch = Stopwatch()
        unchanged = [chunker.look(page, state) for page, state in zip(_pages("redux"), states, strict=True)]
        again.append(watch.read())
        assert all(delta.empty for delta in unchanged)
        hashes = {page.path: page.hash for page in pages}
        watch = Stopwatch()
        assert all(hashes[page.path] == page.hash for page in _pages("redux"))
        skipped.append(watch.read())
    report.add("redux: pages", len(_pages("redux")))
    report.add("redux: chunks", chunks)
    for what, found in (("cold", cold), ("unchanged", again), ("unchanged, by the hash of the page alone", skipped)):
        report.add(f"redux: read, shape, diff, {what}: processor", median(cpu for cpu, _ in found), "s")
        report.add(f"redux: read, shape, diff, {what}: wall", median(wall for _, wall in found), "s")


def _no_op(texts: list[str]) -> list[np.ndarray[tuple[int], np.dtype[np.float32]]]:
    empty = np.zeros(_PIN.dimensions, np.float32)
    return [empty for _ in texts]


def _pages(tree: str) -> list[DocsPage]:
    return list(read_tree(CORPUS / tree, ["**"], tree, f"/{tree}").pages)


def _identity(report: Report, count: int) -> None:
    """Random edits of one section each, then edits that change no text."""
    chunker = Chunker()
    rng = Random(7)  # noqa: S311 - which section is edited
    pages = [page for tree in sorted(path.name for path in CORPUS.iterdir()) for page in _pages(tree)]
    spent: list[int] = []
    owed: list[int] = []
    while len(spent) < count:
        edit = edited(rng.choice(pages), rng.choice(KINDS), rng)
        if edit is not None:
            spent.append(_embedded(chunker, edit))
            owed.append(chunker.tokens.count(edit.section))
    report.aim("tokens embedded ÷ tokens of the changed sections", sum(spent) / sum(owed), "at most", 1.15)
    report.add("the same, median edit", median(a / b for a, b in zip(spent, owed, strict=True)), "times")
    report.add("the same, 95 of 100 edits under", percentile([a / b for a, b in zip(spent, owed, strict=True)], 0.95))
    for kind in SILENT:
        wasted = 0
        made = 0
        while made < count // 4:
            edit = edited(rng.choice(pages), kind, rng)
            if edit is not None:
                made += 1
                wasted += _embedded(chunker, edit)
        report.aim(f"tokens embedded after {made} edits of {kind} alone", wasted, "at most", 0, "")
    report.notes.append(f"{count} seeded edits over {len(pages)} pages: {', '.join(KINDS)}")


def _embedded(chunker: Chunker, edit: Edit) -> int:
    before = chunker.look(edit.before)
    known = {draft.text_hash for draft in before.write}
    after = chunker.look(edit.after, stored(before))
    return sum(draft.tokens for draft in after.write if draft.text_hash not in known)
