"""How near the embedder comes to its provider's limit, in how few requests; the local model through the pipeline."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from random import Random
from statistics import median
from typing import Final

from brain.knowledge.embedding.local import LocalClient
from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.pin import OPENAI_SMALL
from brain.knowledge.settings import load
from tests.bench.report import Options, Report, ratio_of_rounds
from tests.bench.stage import InstantClient, sentence, server, stage, tricks
from tests.support.processes import embedder as fake_embedder
from worker.app import quiet_surroundings
from worker.config import PREFIX, WorkerSettings
from worker.embedding.batcher import LOCAL_LIMITS, BatchingEmbedder
from worker.embedding.lanes import Limits
from worker.pipeline.around import Around

_LATENCY: Final = 0.15
_PER: Final = 6.0  # seconds of the endpoint's window
_CAP: Final = 300_000  # tokens a minute
_GROUP: Final = 64  # texts that one pump asks for together
_PUMPS: Final = 3
_WORDS: Final = 90


def measure(options: Options) -> Report:
    """Each part in turn."""
    return asyncio.run(_measure(quick=options.quick))


async def _measure(*, quick: bool) -> Report:
    report = Report("embedding")
    await _limit(report, spans=2 if quick else 5)
    with server() as uri:
        await _requests(report, uri, 300 if quick else 1000)
        await _local(report, uri, rounds=1 if quick else 3, count=120 if quick else 600)
    return report


class Words:
    """Implements TokenCounter as the fake endpoint counts: a word is a token."""

    window = 8192

    def count(self, text: str) -> int:
        """How many words."""
        return len(text.split())


async def _limit(report: Report, spans: int) -> None:
    """Three askers that never stop, an endpoint 150 ms away that holds a limit, with and without our knowing it.

    The endpoint's limit is the strictest kind, of every span of `_PER` seconds, and it counts what it let through: in
    so many spans, from the first call on, that can never be more than so many times the limit of one.
    """
    for what, known in (("the limit is set", True), ("only the endpoint knows it", False)):
        counted = await _askers(spans * _PER, known=known)
        allowed = spans * _CAP * _PER / 60
        report.aim(f"tokens let through ÷ allowed, {what}", counted["accepted"] / allowed, "at least", 0.95)
        report.add(f"requests refused (429), {what}", counted["refused"] / counted["calls"] * 100, "%")
    report.notes.append(
        f"limit {_CAP:,} tokens a minute in every {_PER:g} s, embedder over HTTP {_LATENCY * 1000:.0f} ms away"
    )


async def _askers(seconds: float, *, known: bool) -> Mapping[str, int]:
    """What the endpoint has counted after so many seconds."""
    model = replace(OPENAI_SMALL, dimensions=64)  # narrow, so that making and reading the answers costs nothing
    rng = Random(2)  # noqa: S311 - sample text
    limits = Limits(texts=8, tokens_per_minute=_CAP if known else None)
    with fake_embedder(64) as fake:
        fake.script({"*": {"kind": "limited", "tokens": _CAP * _PER / 60, "per": _PER, "seconds": _LATENCY}})
        client = OpenRouterClient(model, "bench", fake.url)
        embedder = BatchingEmbedder(client, Words(), limits, _around())

        async def ask() -> None:
            while True:
                await embedder.embed([f"{sentence(rng, _WORDS)} {rng.random()}" for _ in range(_GROUP)])

        askers = [asyncio.create_task(ask()) for _ in range(_PUMPS)]
        await asyncio.sleep(seconds)
        counted = await asyncio.to_thread(fake.counters)
        for asker in askers:
            asker.cancel()
        await asyncio.gather(*askers, return_exceptions=True)
        await embedder.close()
        await client.close()
    return counted


async def _requests(report: Report, uri: str, count: int) -> None:
    """A first scan of so many documents, each one chunk."""
    client = InstantClient(latency=_LATENCY)
    async with stage(uri, client) as one:
        await one.database.trickipedia.insert_many(tricks(count))
        await one.first_scan()
    report.add(f"requests for {count} chunks", client.calls)
    report.add("requests ÷ the fewest possible", client.calls / ceil(count / Limits().texts), "times")


async def _local(report: Report, uri: str, rounds: int, count: int) -> None:
    """The packaged model through a first scan, and alone over the texts that were stored, in turn."""
    client = LocalClient()
    await client.embed(["warm"])
    found: dict[str, list[float]] = {"pipeline": [], "alone": []}
    for number in range(rounds):
        async with stage(uri, client, LOCAL_LIMITS) as one:
            await one.database.trickipedia.insert_many(tricks(count, seed=number + 10))
            found["pipeline"].append(count / await one.first_scan())
            texts = [row["text"] async for row in one.database.knowledge_chunks.find({}, {"text": 1})]
            began = time.monotonic()
            for start in range(0, count, LOCAL_LIMITS.texts):
                await client.embed(texts[start : start + LOCAL_LIMITS.texts])
            found["alone"].append(count / (time.monotonic() - began))
    await client.close()
    report.add("local model through the pipeline", median(found["pipeline"]), "texts/s")
    report.add("local model alone", median(found["alone"]), "texts/s")
    report.aim("pipeline ÷ model alone", ratio_of_rounds(found["pipeline"], found["alone"]), "at least", 0.9)


def _around() -> Around:
    settings = load(WorkerSettings, {"EMBEDDING_PROVIDER": "local"}, PREFIX, embedded=True)
    return replace(quiet_surroundings(settings), patience=None)
