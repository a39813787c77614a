"""The exact engine over 10,000 chunks of 1,536 numbers, beside a bare product of matrix and vector in the same run."""

import asyncio
import importlib
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from pymongo import AsyncMongoClient

from brain.knowledge.chunk import Vector
from brain.knowledge.connect import Row
from brain.knowledge.pin import Pin
from brain.knowledge.search import Filter
from brain.knowledge.search import vectors as arithmetic
from brain.knowledge.search.exact import ExactSearch
from brain.knowledge.search.table import VectorTable
from tests.bench.report import Options, Report, percentile
from tests.bench.stage import server

_PIN: Final = Pin("openai/text-embedding-3-small", 1536)
_LIMIT: Final = 10
_SPORTS: Final = ("skateboarding", "snowboarding", "surfing", "bmx")


def measure(options: Options) -> Report:
    """Fill a database, load the engine, ask."""
    return asyncio.run(_measure(2_000 if options.quick else 10_000, 50 if options.quick else 200))


async def _measure(count: int, queries: int) -> Report:
    report = Report("search")
    rng = np.random.default_rng(1)
    matrix = rng.standard_normal((count, _PIN.dimensions), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    asked = [matrix[rng.integers(count)] + 0.02 * rng.standard_normal(1536, dtype=np.float32) for _ in range(queries)]
    rows = [_row(index, vector) for index, vector in enumerate(matrix)]
    table = VectorTable(_PIN, count)
    table.replace((), rows)
    _compare(report, table, matrix, asked)
    with server() as uri:
        async with AsyncMongoClient[Row](uri) as client:
            chunks = client["bench"][_PIN.collection]
            for start in range(0, count, 500):
                await chunks.insert_many(rows[start : start + 500])
            await _engine(report, ExactSearch(chunks, _PIN), asked)
    report.notes.append(f"{count} chunks of {_PIN.dimensions} numbers, {queries} queries, {_LIMIT} hits")
    report.notes += [f"{name} is not installed" for name in ("faiss", "usearch") if find_spec(name) is None]
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


def _compare(report: Report, table: VectorTable, matrix: Vector, asked: list[Vector]) -> None:
    """Engines in turn on each query, so that whatever else the machine does meets all of them."""
    engines: dict[str, Callable[[Vector], object]] = {
        "bare numpy": lambda query: _bare(matrix, query),
        "exact engine": lambda query: table.nearest(query, _LIMIT, Filter()),
        "exact engine, one sport": lambda query: table.nearest(query, _LIMIT, Filter(sport="bmx")),
        **_optional(matrix),
    }
    taken: dict[str, list[float]] = {name: [] for name in engines}
    for query in asked:
        for name, ask in engines.items():
            began = time.perf_counter()
            ask(query)
            taken[name].append((time.perf_counter() - began) * 1000)
    bare = percentile(taken["bare numpy"], 0.5)
    for name, times in taken.items():
        report.add(f"{name}, p50", percentile(times, 0.5), "ms")
        report.add(f"{name}, p95", percentile(times, 0.95), "ms")
    report.aim("exact engine ÷ bare numpy, p50", percentile(taken["exact engine"], 0.5) / bare, "at most", 1.5)
    report.add(
        "exact engine with a filter ÷ bare numpy", percentile(taken["exact engine, one sport"], 0.5) / bare, "times"
    )


def _bare(matrix: Vector, query: Vector) -> list[int]:
    values = matrix @ query
    best = np.argpartition(-values, _LIMIT)[:_LIMIT]
    return [int(index) for index in best[np.argsort(-values[best])]]


def _optional(matrix: Vector) -> dict[str, Callable[[Vector], object]]:
    """Other people's exact engines, where they are installed."""
    engines: dict[str, Callable[[Vector], object]] = {}
    if find_spec("faiss") is not None:
        flat: Any = importlib.import_module("faiss").IndexFlatIP(matrix.shape[1])
        flat.add(matrix)
        engines["faiss flat"] = lambda query: flat.search(query[None, :], _LIMIT)
    if find_spec("usearch") is not None:
        exact: Any = importlib.import_module("usearch.index").search
        engines["usearch exact"] = lambda query: exact(matrix, query, _LIMIT, "ip", exact=True)
    return engines


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
