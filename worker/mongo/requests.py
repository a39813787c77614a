"""Work that a command leaves for the leader: implements `worker.ports.Requests`."""

from collections.abc import Mapping
from typing import Final, cast

from bson import ObjectId

from worker.clock import Clock
from worker.errors import FencedOff
from worker.model import Leadership, Request
from worker.mongo.driver import Database
from worker.mongo.names import REQUESTS

KEPT_SECONDS: Final = 86_400
"""How long a row stays after it was left (a TTL index removes it): long enough to be looked at the next morning."""


class MongoRequests:
    """Rows of `freshness_requests`: left, begun by an epoch, finished with a result."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def submit(self, kind: str, arguments: Mapping[str, object]) -> str:
        """Leave a request; its id."""
        request_id = str(ObjectId())
        row = {"_id": request_id, "kind": kind, "arguments": dict(arguments), "leftAt": self._clock.now(), "epoch": 0}
        await self._database.insert(REQUESTS, row)
        return request_id

    async def take(self, leadership: Leadership, *, pins: bool = False) -> Request | None:
        """The oldest request of its lane that is not finished, again when the answer to the first take was lost."""
        lane = "pin" if pins else {"$ne": "pin"}
        query = {"result": {"$exists": False}, "epoch": {"$lte": leadership.epoch}, "kind": lane}
        rows = await self._database.find(REQUESTS, query, sort=[("leftAt", 1)], limit=1)
        if not rows:
            return None
        row = rows[0]
        begun = {"$set": {"epoch": leadership.epoch, "begunAt": self._clock.now()}}
        if not await self._database.update(REQUESTS, {"_id": row["_id"], **query}, begun):
            return None
        arguments = cast("Mapping[str, object]", row["arguments"])
        return Request(row["_id"], row["kind"], arguments, again=0 < row["epoch"] < leadership.epoch)

    async def finish(self, request: Request, result: Mapping[str, object], leadership: Leadership) -> None:
        """Store the result; nobody waits for one that is not there any more: a day old, or gone with its database."""
        mine = {"_id": request.id, "epoch": leadership.epoch}
        done = {"$set": {"result": dict(result), "finishedAt": self._clock.now()}}
        if await self._database.update(REQUESTS, mine, done):
            return
        if await self._database.find_one(REQUESTS, {"_id": request.id}, {"_id": 1}) is not None:
            message = "another process holds the lease now and does this request"
            raise FencedOff(message)

    async def under_way(self) -> bool:
        """Whether a leader is at work on any request: few are done at a time, and a backfill takes a while."""
        begun = {"result": {"$exists": False}, "epoch": {"$gt": 0}}
        return await self._database.find_one(REQUESTS, begun, {"_id": 1}) is not None

    async def withdraw(self, request_id: str) -> None:
        """Take back a request that no leader has begun."""
        await self._database.delete(REQUESTS, {"_id": request_id, "epoch": 0})

    async def abandon(self, request_id: str) -> None:
        """Forget a request, begun or not: who asked holds the lease now, and does it."""
        await self._database.delete(REQUESTS, {"_id": request_id})

    async def result(self, request_id: str) -> Mapping[str, object] | None:
        """The result, or None while it is not there."""
        row = await self._database.find_one(REQUESTS, {"_id": request_id}, {"result": 1})
        return None if row is None else row.get("result")
