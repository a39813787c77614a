"""Applied events a second of the real leader, beside what the same server does for bare loops in the same run.

Each round has a fresh database: the leader stores a position over an empty collection and stops; then documents are
written, and the leader goes on through their events. The bare loops follow in the same round: a tail that only counts,
a writer of the very rows that the leader stored in transactions of 100, and the loop that people write first.
"""

import asyncio
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from pymongo import ReplaceOne
from pymongo.read_concern import ReadConcern

from brain.knowledge.connect import Row
from tests.bench.report import Options, Report, ratio_of_rounds
from tests.bench.stage import InstantClient, Stage, server, stage, tricks, vector_of
from worker.mongo.names import LEDGER
from worker.mongo.transactions import MAJORITY

_BATCH: Final = 100
_NAIVE_EVENTS: Final = 60
_NAIVE_LATENCY: Final = 0.05


def measure(options: Options) -> Report:
    """Run the rounds."""
    return asyncio.run(_measure(rounds=2 if options.quick else 3, count=600 if options.quick else 2000))


async def _measure(rounds: int, count: int) -> Report:
    found: dict[str, list[float]] = {name: [] for name in ("leader", "tail", "bare", "naive")}
    for number in range(rounds):
        with server() as uri:
            async with stage(uri, InstantClient()) as one:
                await _round(one, count, number + 1, found)
    report = Report("pipeline")
    report.add("leader, events applied", median(found["leader"]), "/s")
    report.add("bare tail that only counts", median(found["tail"]), "/s")
    report.add("bare loop, same rows in transactions of 100", median(found["bare"]), "/s")
    report.add("naive loop, one at a time, 50 ms embedder", median(found["naive"]), "/s")
    report.aim("leader ÷ bare transactions", ratio_of_rounds(found["leader"], found["bare"]), "at least", 0.5)
    report.aim("leader ÷ naive", ratio_of_rounds(found["leader"], found["naive"]), "at least", 20)
    report.add("leader ÷ bare tail", ratio_of_rounds(found["leader"], found["tail"]), "times")
    report.notes.append(f"{rounds} rounds of {count} inserted tricks (1,536 numbers each), medians; embedder at once")
    return report


async def _round(one: Stage, count: int, seed: int, found: dict[str, list[float]]) -> None:
    await one.first_scan()
    position = (await one.plain.admin.command("ping"))["operationTime"]
    await one.database.trickipedia.insert_many(tricks(count, seed))
    found["leader"].append(count / await one.lead(count))
    found["tail"].append(await _tail(one, position, count))
    found["bare"].append(await _bare(one))
    found["naive"].append(await _naive(one, seed))


async def _tail(one: Stage, position: object, count: int) -> float:
    began = time.monotonic()
    seen = 0
    pipeline = [{"$match": {"ns.coll": "trickipedia"}}]
    async with await one.database.watch(pipeline, start_at_operation_time=position) as stream:
        async for _event in stream:
            seen += 1
            if seen == count:
                break
    return count / (time.monotonic() - began)


async def _bare(one: Stage) -> float:
    """The rows that the leader stored, written again elsewhere with the same indexes."""
    chunks: list[Row] = await one.database.knowledge_chunks.find().to_list()
    ledger: list[Row] = await one.database[LEDGER].find().to_list()
    await one.database.bare_chunks.create_index([("docKey", 1)])
    await one.database.bare_chunks.create_index([("textHash", 1)])
    for keys in ([("source", 1), ("_id", 1)], [("refs", 1)]):
        await one.database.bare_ledger.create_index(keys)
    for name in ("staleSince", "expiresAt"):
        await one.database.bare_ledger.create_index([(name, 1)], sparse=True)
    began = time.monotonic()
    for start in range(0, len(ledger), _BATCH):
        await _transaction(one, chunks[start : start + _BATCH], ledger[start : start + _BATCH])
    return len(ledger) / (time.monotonic() - began)


async def _transaction(one: Stage, chunks: Sequence[Row], ledger: Sequence[Row]) -> None:
    async def body(session: Any) -> None:  # noqa: ANN401 - the driver's own
        await one.database.bare_chunks.bulk_write(_upserts(chunks), ordered=False, session=session)
        await one.database.bare_ledger.bulk_write(_upserts(ledger), ordered=False, session=session)

    async with one.plain.start_session() as session:
        await session.with_transaction(body, read_concern=ReadConcern("snapshot"), write_concern=MAJORITY)


def _upserts(rows: Sequence[Row]) -> list[ReplaceOne[Row]]:
    return [ReplaceOne({"_id": row["_id"]}, row, upsert=True) for row in rows]


async def _naive(one: Stage, seed: int) -> float:
    """What people write first: for each event, embed the whole document, replace its chunk."""
    database = one.database
    async with await database.watch([{"$match": {"ns.coll": "trickipedia"}}], full_document="updateLookup") as stream:
        rows = [row | {"_id": f"naive-{row['_id']}"} for row in tricks(_NAIVE_EVENTS, seed)]
        await database.trickipedia.insert_many(rows)
        began = time.monotonic()
        done = 0
        async for event in stream:
            row = event["fullDocument"]
            text = f"{row['name']}\n\n{row['description']}"
            await asyncio.sleep(_NAIVE_LATENCY)
            vector = vector_of(text, 1536).tolist()
            chunk = {"_id": row["_id"], "text": text, "embedding": vector}
            await database.naive_chunks.replace_one({"_id": row["_id"]}, chunk, upsert=True)
            done += 1
            if done == _NAIVE_EVENTS:
                break
    return done / (time.monotonic() - began)
