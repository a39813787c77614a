"""Durable positions: implements `worker.ports.Checkpoints`. One document for the stream, one a source for its scan.

Each write is fenced like a publication: a former leader moves none, whether or not the one that leads has written yet.
"""

from collections.abc import Mapping
from datetime import datetime
from types import UnionType
from typing import Any, Final, cast

from bson import Timestamp
from pymongo import DeleteOne, UpdateOne

from worker.errors import ForeignState
from worker.model import Checkpoint, DocKey, Gap, Leadership, Position, Scan
from worker.mongo.driver import Database
from worker.mongo.fence import fence
from worker.mongo.names import CHECKPOINTS, GAP_ID, SCAN, STREAM_ID
from worker.mongo.transactions import Session

FORMAT: Final = 1

_STREAM_FIELDS: Final[Mapping[str, type | UnionType]] = {
    "at": Timestamp,
    "savedAt": datetime,
}
_SCAN_FIELDS: Final[Mapping[str, type | UnionType]] = {
    "source": str,
    "reason": str,
    "shape": str,
    "done": bool,
    "startedAt": datetime | None,
    "finishedAt": datetime | None,
    "seen": int | None,
}
_GAP_FIELDS: Final[Mapping[str, type | UnionType]] = {
    "since": Timestamp,
    "until": Timestamp,
    "noticedAt": datetime,
    "outcomes": dict,
}


class MongoCheckpoints:
    """Positions in `freshness_checkpoints`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self) -> Checkpoint | None:
        """The stored position of the stream."""
        row = await self._database.find_one(CHECKPOINTS, {"_id": STREAM_ID})
        return None if row is None else self._position(row)

    async def save(self, checkpoint: Checkpoint, leadership: Leadership) -> None:
        """Store the position of the stream."""
        row = {
            "format": FORMAT,
            "database": self._database.name,
            "token": checkpoint.position.token,
            "at": checkpoint.position.at,
            "savedAt": checkpoint.saved_at,
            "sources": sorted(checkpoint.sources),
        }
        await self._write(STREAM_ID, row, leadership)

    async def scans(self) -> Mapping[str, Scan]:
        """The state of each source's scan."""
        rows = await self._database.find(CHECKPOINTS, {"_id": {"$gte": SCAN, "$lt": "scan0"}})
        return {scan.source: scan for scan in map(_scan, rows)}

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

    async def gap(self) -> Gap | None:
        """The gap that is not reported yet."""
        row = await self._database.find_one(CHECKPOINTS, {"_id": GAP_ID})
        return None if row is None else _gap(row)

    async def save_gap(self, gap: Gap | None, leadership: Leadership) -> None:
        """Store the gap that is to be reported, or that there is none."""
        if gap is None:
            await self._store(DeleteOne({"_id": GAP_ID}), leadership)
            return
        row = {
            "format": FORMAT,
            "since": gap.since,
            "until": gap.until,
            "sources": list(gap.sources),
            "noticedAt": gap.noticed_at,
            "outcomes": dict(gap.outcomes),
        }
        await self._write(GAP_ID, row, leadership)

    async def _write(self, name: str, row: Mapping[str, Any], leadership: Leadership) -> None:
        change = UpdateOne({"_id": name}, {"$set": {**row, "epoch": leadership.epoch}}, upsert=True)
        await self._store(change, leadership)

    async def _store(self, change: UpdateOne | DeleteOne, leadership: Leadership) -> None:
        async def body(session: Session) -> None:
            await fence(self._database, leadership, session)
            await self._database.bulk(CHECKPOINTS, [change], session=session)

        await self._database.transaction(body)

    def _position(self, row: Mapping[str, Any]) -> Checkpoint:
        _check_format(row)
        if row.get("database") != self._database.name:
            message = (
                f"the checkpoint in {CHECKPOINTS} belongs to another database: it was copied here; remove that row to "
                "scan everything again"
            )
            raise ForeignState(message)
        # A row of before the sources were noted speaks for none: all are scanned once more.
        sources = _texts(row.get("sources") or [])
        if sources is None or not _fit(row, _STREAM_FIELDS) or not isinstance(row.get("token"), dict | None):
            message = f"the checkpoint in {CHECKPOINTS} is damaged: remove that row to scan everything again"
            raise ForeignState(message)
        return Checkpoint(Position(row["at"], row.get("token")), row["savedAt"], sources)


def _scan(row: Mapping[str, Any]) -> Scan:
    _check_format(row)
    after: Any = row.get("after")
    placed = after is None or (isinstance(after, dict) and "id" in after)
    if row["_id"] != f"{SCAN}{row.get('source')}" or not placed or not _fit(row, _SCAN_FIELDS):
        message = f"the row {row['_id']} in {CHECKPOINTS} is damaged: remove it to scan that source again"
        raise ForeignState(message)
    return Scan(
        source=row["source"],
        reason=row["reason"],
        shape=row["shape"],
        done=row["done"],
        after=None if after is None else DocKey.of(row["source"], row["after"]["id"]),
        started_at=row.get("startedAt"),
        finished_at=row.get("finishedAt"),
        seen=row.get("seen") or 0,
    )


def _gap(row: Mapping[str, Any]) -> Gap | None:
    """None for a row that is damaged or of a newer version: a report is not worth a worker that does not start."""
    outcomes, sources = row.get("outcomes"), row.get("sources")
    if row.get("format") != FORMAT or not _fit(row, _GAP_FIELDS) or _texts(sources) is None:
        return None
    counts = {name: count for name, count in cast("Mapping[Any, Any]", outcomes).items() if isinstance(count, int)}
    return Gap(row["since"], row["until"], tuple(row["sources"]), row["noticedAt"], counts)


def _check_format(row: Mapping[str, Any]) -> None:
    form, name = row.get("format"), row["_id"]
    if not isinstance(form, int) or form > FORMAT:
        again = "everything" if name == STREAM_ID else "that source"
        message = (
            f"the row {name} in {CHECKPOINTS} has format {form}, and this version knows up to {FORMAT}: run the newer "
            f"version, or remove that row to scan {again} again"
        )
        raise ForeignState(message)


def _texts(value: object) -> frozenset[str] | None:
    """The texts of a list; None for anything else."""
    rows = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = frozenset(row for row in rows if isinstance(row, str))
    return texts if all(isinstance(row, str) for row in rows) else None


def _fit(row: Mapping[str, Any], fields: Mapping[str, type | UnionType]) -> bool:
    return all(isinstance(row.get(name), kind) for name, kind in fields.items())
