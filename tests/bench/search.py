"""The exact engine over 10,000 chunks of 1,536 numbers, beside a bare product of matrix and vector in the same run."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from pymongo import AsyncMongoClient
from pymongo.asynchronous.collection import AsyncCollection

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row
from brain.knowledge.pin import Pin
from brain.knowledge.search import Filter
from brain.knowledge.search import vectors as arithmetic
from brain.knowledge.search.exact import ExactSearch
from brain.knowledge.search.table import VectorTable
from tests.bench.engines import NAMES, Others, others
from tests.bench.report import Options, Report, percentile
from tests.bench.stage import server

_PIN: Final = Pin("openai/text-embedding-3-small", 1536)
Ask = Callable[[Vector], list[int]]

_LIMIT: Final = 10
_PUBLISHED: Final = 50  # chunks written one by one beside an engine that follows
_SPORTS: Final = ("skateboarding", "snowboarding", "surfing", "bmx")


def measure(options: Options) -> Report:
    """Fill a database, load the engine, ask."""
    return asyncio.run(_measure(options))


async def _measure(options: Options) -> Report:
    count, queries = (2_000, 50) if options.quick else (10_000, 200)
    report = Report("search")
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((count, _PIN.dimensions), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    asked = [matrix[rng.integers(count)] + 0.02 * rng.standard_normal(1536, dtype=np.float32) for _ in range(queries)]
    rows = [_row(index, vector) for index, vector in enumerate(matrix)]
    table = VectorTable(_PIN, count)
    table.replace((), rows)
    with others(report, matrix, asked, _LIMIT) if options.with_engines else nullcontext() as beside:
        _compare(report, table, matrix, asked, beside)
    with server() as uri:
        async with AsyncMongoClient[Row](uri) as client:
            chunks = client["bench"][_PIN.collection]
            for start in range(0, count, 500):
                await chunks.insert_many(rows[start : start + 500])
            await _engine(report, ExactSearch(chunks, _PIN), asked)
            await _following(report, chunks, matrix, count)
    report.notes.append(f"{count} chunks of {_PIN.dimensions} numbers, {queries} queries, {_LIMIT} hits")
    return report


def _row(index: int, vector: Vector) -> Row:
    return {
        "_id": f"trickipedia/n:{index:06}/full",
        "sport": _SPORTS[index % len(_SPORTS)],
        "docType": "trick",
        "model": _PIN.model,
        "text": f"Trick {index}: pop, slide, catch, roll away. " * 8,
        "embedding": arithmetic.binary(vector),
    }


@dataclass(slots=True)
class Taken:
    """What one engine took for each query, in milliseconds, and the rows that it found."""

    times: list[float] = field(default_factory=list[float])
    found: list[frozenset[int]] = field(default_factory=list[frozenset[int]])


def _compare(report: Report, table: VectorTable, matrix: Vector, asked: list[Vector], beside: Others | None) -> None:
    """Engines in turn on each query, so that whatever else the machine does meets all of them."""
    ours: dict[str, Ask] = {
        "bare numpy": lambda query: _bare(matrix, query),
        "exact engine": lambda query: _numbers(table.nearest(query, _LIMIT, Filter())),
        "exact engine, one sport": lambda query: _numbers(table.nearest(query, _LIMIT, Filter(sport="bmx"))),
    }
    taken = {name: Taken() for name in (*ours, *(NAMES if beside is not None else ()))}
    for number, query in enumerate(asked):
        for name, ask in _rotated(ours, number):
            began = time.perf_counter()
            rows = ask(query)
            taken[name].times.append((time.perf_counter() - began) * 1000)
            taken[name].found.append(frozenset(rows))
        if beside is not None:
            for name in NAMES:
                milliseconds, others_rows = beside.search(name, number)
                taken[name].times.append(milliseconds)
                taken[name].found.append(frozenset(others_rows))
    middle = {name: percentile(one.times, 0.5) for name, one in taken.items()}
    for name, one in taken.items():
        report.add(f"{name}, p50", middle[name], "ms")
        report.add(f"{name}, p95", percentile(one.times, 0.95), "ms")
    report.aim("exact engine ÷ bare numpy, p50", middle["exact engine"] / middle["bare numpy"], "at most", 1.5)
    with_filter = middle["exact engine, one sport"] / middle["bare numpy"]
    report.add("exact engine with a filter ÷ bare numpy, p50", with_filter, "times")
    for name, one in taken.items():
        if name in NAMES:
            report.add(f"exact engine ÷ {name}, p50", middle["exact engine"] / middle[name], "times")
        if not name.startswith("exact engine"):
            same = [a == b for a, b in zip(taken["exact engine"].found, one.found, strict=True)]
            report.aim(f"queries with the same {_LIMIT} hits as {name}", sum(same) / len(same), "at least", 1.0, "")


def _rotated(engines: Mapping[str, Ask], by: int) -> Sequence[tuple[str, Ask]]:
    """Each goes first as often as any other: who comes after a long one is more likely to be interrupted."""
    order = list(engines.items())
    return order[by % len(order) :] + order[: by % len(order)]


def _numbers(found: list[tuple[str, float]]) -> list[int]:
    """The rows of the matrix that these ids stand for."""
    return [int(chunk_id.split(":")[1].split("/")[0]) for chunk_id, _ in found]


def _bare(matrix: Vector, query: Vector) -> list[int]:
    values = matrix @ query
    best = np.argpartition(-values, _LIMIT)[:_LIMIT]
    return [int(index) for index in best[np.argsort(-values[best])]]


async def _engine(report: Report, engine: ExactSearch, asked: list[Vector]) -> None:
    """Through the database: the load at the first query, then queries with their texts."""
    taken: list[float] = []
    for query in asked:
        began = time.perf_counter()
        await engine.search(query, _LIMIT, Filter())
        taken.append(time.perf_counter() - began)
    report.add("load at the first query", taken[0], "s")
    report.add("whole search with texts from the database, p50", percentile(taken[1:], 0.5) * 1000, "ms")
    report.add("whole search with texts from the database, p95", percentile(taken[1:], 0.95) * 1000, "ms")


async def _following(report: Report, chunks: AsyncCollection[Row], matrix: Vector, count: int) -> None:
    """From a chunk's acknowledged write to the first search that finds it, in an engine that follows."""
    engine = ExactSearch(chunks, _PIN, follow=True)
    await engine.search(matrix[0], _LIMIT, Filter())
    rng = np.random.default_rng(2)
    taken: list[float] = []
    for number in range(count, count + _PUBLISHED):
        vector = rng.standard_normal(_PIN.dimensions, dtype=np.float32)
        row = _row(number, vector)
        await chunks.insert_one(row)
        began = time.perf_counter()
        while not await engine.holds(row["_id"], vector, Filter()):  # noqa: ASYNC110 - what is asked has no event
            await asyncio.sleep(0.002)
        taken.append(time.perf_counter() - began)
    await engine.close()
    report.aim("stored → found by an engine that follows, p50", percentile(taken, 0.5), "at most", 1.0, "s")
    report.aim("stored → found by an engine that follows, worst", max(taken), "at most", 1.0, "s")
