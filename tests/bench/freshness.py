"""Write → stored under a steady load, with a real worker process and an embedder 50 ms away; kill, start, drain.

Stored is when a change stream of an observer shows the chunk with the new text: later than the commit itself, never
earlier. An edit that a newer one of the same document overtook counts until the newer one is seen.
"""

import re
import signal
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from pymongo import MongoClient
from pymongo.database import Database

from brain.knowledge.connect import Row
from tests.bench.report import Options, Report, percentile
from tests.bench.stage import sentence, server, tricks
from tests.support.processes import Embedder, Worker, embedder, environment, eventually, worker

_DOCUMENTS: Final = 500
_RATE: Final = 50  # changes a second
_LATENCY: Final = 0.05
_MARK: Final = re.compile(r"Edit (\d+)\.")


def measure(options: Options) -> Report:
    """Run the load, then the ends and starts."""
    seconds = 10 if options.quick else 60
    report = Report("freshness")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, server() as uri, embedder() as fake:
        fake.script({"*": {"kind": "slow", "seconds": _LATENCY}})
        with MongoClient[Row](uri) as client:
            scene = Scene(Path(folder), uri, fake, client["bench"])
            scene.database.trickipedia.insert_many(tricks(_DOCUMENTS))
            _steady(scene, report, seconds)
            _ends_and_starts(scene, report, 5 if options.quick else 10)
    report.notes.append(f"{_RATE} edits/s over {_DOCUMENTS} tricks for {seconds} s, embedder {_LATENCY * 1000:.0f} ms")
    return report


@dataclass(slots=True)
class Scene:
    """Everything that runs, and what was written and seen so far (by number of the edit)."""

    folder: Path
    uri: str
    fake: Embedder
    database: Database[Row]
    rng: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - sample text
    written: dict[int, tuple[str, float]] = field(default_factory=dict[int, tuple[str, float]])
    seen: dict[str, list[tuple[int, float]]] = field(default_factory=dict[str, list[tuple[int, float]]])

    @contextmanager
    def worker(self) -> Generator[Worker]:
        """A worker with production's settings but for the addresses."""
        env = environment(
            ATLAS_URI=self.uri, ATLAS_DB="bench", OPENROUTER_API_KEY="bench", OPENROUTER_BASE_URL=self.fake.url
        )
        with worker(self.folder, env) as running:
            yield running

    def edit(self, seconds: float) -> None:
        """Edit random documents at the rate for so long; late edits are made up for, so that the count is exact."""
        began = time.monotonic()
        for turn in range(int(seconds * _RATE)):
            time.sleep(max(0.0, began + turn / _RATE - time.monotonic()))
            number = len(self.written)
            name = f"trick-{self.rng.randrange(_DOCUMENTS):05}"
            text = f"{sentence(self.rng, 60)}. Edit {number}."
            self.database.trickipedia.update_one({"_id": name}, {"$set": {"description": text}})
            self.written[number] = (name, time.monotonic())

    @contextmanager
    def observer(self) -> Generator[None]:
        """Follow the chunks in a thread."""
        stop = threading.Event()
        opened = threading.Event()

        def follow() -> None:
            pipeline: list[Row] = [{"$project": {"fullDocument.docId": 1, "fullDocument.text": 1}}]
            with MongoClient[Row](self.uri) as client:
                chunks = client["bench"].knowledge_chunks
                with chunks.watch(pipeline, full_document="updateLookup", max_await_time_ms=100) as stream:
                    opened.set()
                    while not stop.is_set():
                        self._note(stream.try_next())

        thread = threading.Thread(target=follow)
        thread.start()
        opened.wait(30)
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _note(self, event: Mapping[str, Any] | None) -> None:
        row: Mapping[str, Any] | None = event.get("fullDocument") if event is not None else None
        if row and (mark := _MARK.search(row["text"])):
            self.seen.setdefault(row["docId"], []).append((int(mark.group(1)), time.monotonic()))

    def missing(self) -> list[int]:
        """Edits that no chunk shows yet, nor anything newer."""
        newest = {name: max(number for number, _ in found) for name, found in self.seen.items()}
        return [number for number, (name, _) in self.written.items() if newest.get(name, -1) < number]

    def delays(self) -> list[float]:
        """Seconds from each write to when it or a newer edit of its document was seen."""
        return [
            max(0.0, min(at for seen, at in self.seen[name] if seen >= number) - written)
            for number, (name, written) in self.written.items()
        ]


def _steady(scene: Scene, report: Report, seconds: float) -> None:
    with scene.worker() as running:
        running.until_ready()
        with scene.observer():
            scene.edit(seconds)
            eventually(lambda: not scene.missing(), "every edit in the chunks")
        delays = scene.delays()
        report.aim("write → stored, p50", percentile(delays, 0.50), "at most", 1.0, "s")
        report.add("write → stored, p95", percentile(delays, 0.95), "s")
        report.aim("write → stored, p99", percentile(delays, 0.99), "at most", 3.0, "s")
        report.add("SIGTERM → ended, idle", _stop(running), "s")


def _ends_and_starts(scene: Scene, report: Report, seconds: float) -> None:
    """Kill -9 in the middle of the load and start again; then stop in the middle of it."""
    with scene.observer():
        with scene.worker() as running:
            running.until_ready()
            scene.edit(seconds)
            running.stop(signal.SIGKILL)
            lost = len(scene.missing())
        embedded = scene.fake.counters()["texts"]
        with scene.worker() as running:
            report.add("process start → ready, after kill -9", _until_ready(running), "s")
            eventually(lambda: not scene.missing(), "every edit in the chunks")
            again = running.metric('freshness_events_total{outcome="received"') - lost
            report.add("edits not stored at the kill", lost)
            report.add("stored edits read again after the kill", max(0.0, again))
            report.add("texts embedded after the kill", scene.fake.counters()["texts"] - embedded)
            scene.edit(3)
            report.add("SIGTERM → ended, busy (50 edits/s)", _stop(running), "s")
        with scene.worker() as running:
            report.add("process start → ready, after SIGTERM", _until_ready(running), "s")
            eventually(lambda: not scene.missing(), "every edit in the chunks")


def _until_ready(running: Worker) -> float:
    began = time.monotonic()
    running.until_ready()
    return time.monotonic() - began


def _stop(running: Worker) -> float:
    began = time.monotonic()
    running.stop()
    return time.monotonic() - began
