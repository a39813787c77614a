"""Durable positions: implements `worker.ports.Checkpoints`. One document for the stream, one a source for its scan.

Each write names its epoch and matches only rows of the same or an older one: a former leader cannot move them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from bson import Timestamp

from worker.errors import Conflict, FencedOff, ForeignState
from worker.model import Checkpoint, DocKey, Leadership, Position, Scan
from worker.mongo.driver import Database
from worker.mongo.names import CHECKPOINTS, SCAN, STREAM_ID

FORMAT: Final = 1


class MongoCheckpoints:
    """Positions in `freshness_checkpoints`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> Checkpoint | None:
        """The stored position of the stream."""
        row = await self._database.find_one(CHECKPOINTS, {"_id": STREAM_ID})
        if row is None:
            return None
        self._check(row)
        return Checkpoint(Position(row["at"], row.get("token")), row["savedAt"])

    async def save(self, checkpoint: Checkpoint, leadership: Leadership) -> None:
        """Store the position of the stream."""
        row = {
            "format": FORMAT,
            "database": self._database.name,
            "token": checkpoint.position.token,
            "at": checkpoint.position.at,
            "savedAt": checkpoint.saved_at,
        }
        await self._write(STREAM_ID, row, leadership)

    async def scans(self) -> Mapping[str, Scan]:
        """The state of each source's scan."""
        rows = await self._database.find(CHECKPOINTS, {"_id": {"$gte": SCAN, "$lt": "scan0"}})
        return {row["source"]: _scan(row) for row in rows}

    async def save_scan(self, scan: Scan, leadership: Leadership) -> None:
        """Store the state of one source's scan."""
        row = {
            "format": FORMAT,
            "source": scan.source,
            "reason": scan.reason,
            "shape": scan.shape,
            "done": scan.done,
            "after": None if scan.after is None else {"id": scan.after.raw},
            "startedAt": scan.started_at,
            "finishedAt": scan.finished_at,
            "seen": scan.seen,
        }
        await self._write(f"{SCAN}{scan.source}", row, leadership)

    async def _write(self, name: str, row: Mapping[str, Any], leadership: Leadership) -> None:
        mine = {"_id": name, "epoch": {"$lte": leadership.epoch}}
        change = {"$set": {**row, "epoch": leadership.epoch}}
        try:
            await self._database.update(CHECKPOINTS, mine, change, upsert=True)
        except Conflict as error:
            # The upsert found no row of ours and could not insert: the row that is there is a newer leader's.
            held = await self._database.find_one(CHECKPOINTS, {"_id": name}, {"epoch": 1})
            if held is None or held.get("epoch", 0) <= leadership.epoch:
                raise
            message = "another process holds the lease now: this one's checkpoint is refused"
            raise FencedOff(message) from error

    def _check(self, row: Mapping[str, Any]) -> None:
        form, database = row.get("format"), row.get("database")
        if not isinstance(form, int) or form > FORMAT:
            message = (
                f"the checkpoint in {CHECKPOINTS} has format {form}, and this version knows up to {FORMAT}: "
                "run the newer version, or remove that row to scan everything again"
            )
            raise ForeignState(message)
        if database != self._database.name:
            message = (
                f"the checkpoint in {CHECKPOINTS} belongs to another database: it was copied here; remove that row to "
                "scan everything again"
            )
            raise ForeignState(message)
        whole = isinstance(row.get("at"), Timestamp) and isinstance(row.get("savedAt"), datetime)
        if not whole or not isinstance(row.get("token"), dict | None):
            message = f"the checkpoint in {CHECKPOINTS} is damaged: remove that row to scan everything again"
            raise ForeignState(message)


def _scan(row: Mapping[str, Any]) -> Scan:
    after = row.get("after")
    return Scan(
        source=row["source"],
        reason=str(row["reason"]),
        shape=str(row["shape"]),
        done=bool(row["done"]),
        after=None if after is None else DocKey.of(row["source"], after["id"]),
        started_at=row.get("startedAt"),
        finished_at=row.get("finishedAt"),
        seen=int(row.get("seen") or 0),
    )
