"""The contract of `Database.transaction` where its caller is cancelled, over both drivers; one works in threads."""

import asyncio
from typing import Any

import pytest
from pymongo import InsertOne
from pymongo.asynchronous.database import AsyncDatabase

from worker.mongo.driver import Database, Session

Backend = AsyncDatabase[dict[str, Any]]
STEPS = 4


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 20])
@pytest.mark.parametrize("step", range(STEPS + 1))
async def test_a_cancelled_one_leaves_nothing_open(database: Database, backend: Backend, step: int, turns: int) -> None:
    """Wherever it is, and cancelled twice: it is stored whole or not at all, and the next one goes through at once."""
    came = asyncio.Event()

    async def body(session: Session, number: int) -> None:
        for row in range(STEPS):
            if row == step:
                came.set()
            await database.bulk("rows", [InsertOne({"_id": f"{number}/{row}"})], session=session)
        came.set()

    cut = asyncio.create_task(database.transaction(lambda session: body(session, 0)))
    await came.wait()
    for _ in range(turns):
        await asyncio.sleep(0)  # so many turns of the loop, not a time
    cut.cancel()
    await asyncio.sleep(0)
    cut.cancel()
    await asyncio.wait({cut})
    await database.transaction(lambda session: body(session, 1))
    rows = [row["_id"] async for row in backend["rows"].find()]
    assert len([row for row in rows if row.startswith("1/")]) == STEPS
    assert len(rows) in {STEPS, 2 * STEPS}
