"""How near the embedder comes to its provider's limit, in how few requests; and the local model through the pipeline.

A token limit gives a minute's worth at once and then so much a second: what is measured is the time after that first
minute's worth is spent, when the limit alone decides.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from random import Random
from statistics import median
from typing import Final

from brain.knowledge.embedding import Embedded, EmbeddingClient, Purpose
from brain.knowledge.embedding.local import LocalClient
from brain.knowledge.embedding.openrouter import OpenRouterClient
from brain.knowledge.pin import OPENAI_SMALL, Model
from brain.knowledge.settings import load
from brain.knowledge.tokens import TokenCounter, counter_for
from tests.bench.report import Options, Report, ratio_of_rounds
from tests.bench.stage import InstantClient, sentence, server, stage, tricks
from tests.support.processes import embedder as fake_embedder
from worker.app import quiet_surroundings
from worker.config import PREFIX, WorkerSettings
from worker.embedding.batcher import LOCAL_LIMITS, BatchingEmbedder, Limits
from worker.pipeline.around import Around

_LATENCY: Final = 0.15
_CAP: Final = 300_000  # tokens a minute
_GROUP: Final = 64  # texts that one pump asks for together
_PUMPS: Final = 3
_WORDS: Final = 90


def measure(options: Options) -> Report:
    """Each part in turn."""
    return asyncio.run(_measure(quick=options.quick))


async def _measure(*, quick: bool) -> Report:
    report = Report("embedding")
    await _limit(report, seconds=8 if quick else 30)
    with server() as uri:
        await _requests(report, uri, 300 if quick else 1000)
        await _local(report, uri, rounds=1 if quick else 3, count=120 if quick else 300)
    return report


class Recording:
    """A client that notes when each request is sent, and with how many tokens."""

    def __init__(self, client: EmbeddingClient, tokens: TokenCounter) -> None:
        self._client = client
        self._tokens = tokens
        self.sent: list[tuple[float, int]] = []

    @property
    def model(self) -> Model:
        """The other client's model."""
        return self._client.model

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Note and pass on."""
        self.sent.append((time.monotonic(), sum(map(self._tokens.count, texts))))
        return await self._client.embed(texts, purpose)

    async def close(self) -> None:
        """Close the other client."""
        await self._client.close()


async def _limit(report: Report, seconds: float) -> None:
    """Three askers that never stop, an endpoint 150 ms away, and a limit that is lower than both."""
    model = replace(OPENAI_SMALL, dimensions=64)  # narrow, so that making and reading the answers costs nothing
    rng = Random(2)  # noqa: S311 - sample text
    tokens = counter_for(model)
    burst = asyncio.Event()
    with fake_embedder(64) as fake:
        fake.script({"*": {"kind": "slow", "seconds": _LATENCY}})
        client = Recording(OpenRouterClient(model, "bench", fake.url), tokens)
        embedder = BatchingEmbedder(client, tokens, Limits(tokens_per_minute=_CAP), _around())

        async def ask() -> None:
            while True:
                await embedder.embed([f"{sentence(rng, _WORDS)} {rng.random()}" for _ in range(_GROUP)])
                if sum(count for _, count in client.sent) > _CAP:
                    burst.set()

        askers = [asyncio.create_task(ask()) for _ in range(_PUMPS)]
        await burst.wait()
        spent = len(client.sent)
        await asyncio.sleep(seconds)
        for asker in askers:
            asker.cancel()
        await asyncio.gather(*askers, return_exceptions=True)
        await embedder.close()
        await client.close()
    later = client.sent[spent:]
    rate = sum(count for _, count in later[1:]) / (later[-1][0] - later[0][0]) * 60
    report.aim("tokens a minute ÷ the limit", rate / _CAP, "at least", 0.95)
    report.notes.append(f"limit {_CAP:,} tokens a minute, embedder over HTTP {_LATENCY * 1000:.0f} ms away")


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
