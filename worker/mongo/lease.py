"""Who may write: implements `worker.ports.Lease`. One row, changed only by compare-and-set; the database decides.

No clocks are compared: whoever waits watches the row's `beat`, and takes over when it has not changed for `TTL` on its
own monotonic clock. A holder on this host whose process is gone is replaced at once, so a restart after kill -9 need
not wait. Each takeover raises the epoch, and every later write of the former holder names an epoch that no row has. A
row that went with its database takes no epoch with it: the next one begins above all that were there.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from bson import Timestamp

from brain.knowledge.log import log
from worker.clock import Clock
from worker.errors import Conflict, KnowledgeError
from worker.model import Leadership
from worker.mongo.driver import Database
from worker.mongo.fence import refused
from worker.mongo.names import LEASE_ID, LEASES
from worker.process import process_space, same_process, start_mark

_logger = logging.getLogger(__name__)

TTL: Final = 10.0
"""Seconds without a beat after which a holder is believed dead; it renews every three."""

_STAMP: Final[Mapping[str, Any]] = {"$currentDate": {"beatAt": True}}


class MongoLease:
    """The lease of this process."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._seen: tuple[object, float] | None = None

    async def acquire(self) -> Leadership | None:
        """Take the lease if it is free, silent for too long, or held by a process of this host that is gone."""
        async with self._database.session() as session:
            row = await self._database.find_one(LEASES, {"_id": LEASE_ID}, session=session)
            at: Timestamp = session.operation_time
        if row is None:
            return await self._insert(_above_all(at))
        if not (row.get("holder") is None or await _gone(row["holder"]) or self._silent(row)):
            return None
        unchanged = {"_id": LEASE_ID, "epoch": row["epoch"], "beat": row["beat"]}
        await self._abort_transaction(row["holder"])
        return await self._take(unchanged, int(row["epoch"]) + 1)

    async def renew(self, leadership: Leadership) -> None:
        """Beat. Raises FencedOff; LeaseGone where the row is not there any more."""
        mine = {"_id": LEASE_ID, "epoch": leadership.epoch, "holder": {"$ne": None}}
        if not await self._database.update(LEASES, mine, {"$inc": {"beat": 1}, **_STAMP}):
            raise await refused(self._database)

    async def release(self, leadership: Leadership) -> None:
        """Give the lease back; nothing happens when another one has it."""
        mine = {"_id": LEASE_ID, "epoch": leadership.epoch}
        await self._database.update(LEASES, mine, {"$set": {"holder": None}, "$inc": {"beat": 1}})

    async def holder(self) -> Mapping[str, object] | None:
        """Who leads: host, pid and epoch; None when nobody does.

        Nobody leads either when the holder's process on this host is gone, or when it has been silent for the lease's
        time: by the database's clock alone, which stamps each beat.
        """
        row = await self._database.find_one(LEASES, {"_id": LEASE_ID})
        if row is None or row.get("holder") is None or await _gone(row["holder"]) or await self._is_old(row):
            return None
        return {"host": row["holder"]["host"], "pid": row["holder"]["pid"], "epoch": row["epoch"]}

    async def _insert(self, epoch: int) -> Leadership | None:
        try:
            holder = await self._me()
            await self._database.insert(LEASES, {"_id": LEASE_ID, "epoch": epoch, "beat": 0, "holder": holder})
        except Conflict:  # another one inserted it in the same moment
            return None
        return Leadership(epoch)

    async def _take(self, unchanged: Mapping[str, Any], epoch: int) -> Leadership | None:
        taken = {"$set": {"epoch": epoch, "beat": 0, "holder": await self._me()}, **_STAMP}
        try:
            matched = await self._database.update(LEASES, unchanged, taken)
        except Conflict:
            return None
        return Leadership(epoch) if matched else None

    async def _abort_transaction(self, holder: Mapping[str, Any] | None) -> None:
        """Abort the transaction that a holder killed in the middle of it has left open.

        It has touched the lease, so taking the lease would wait for it: a minute on MongoDB, until the server gives it
        up; on the embedded server for ever. Where sessions cannot be killed (Atlas' free and Flex tiers) it is that
        minute.
        """
        session = holder.get("session") if holder is not None else None
        if session is None:
            return
        try:
            await self._database.kill_session(bytes(session))
        except KnowledgeError as error:
            words = f"{error}: a transaction that it has left open ends by itself within about a minute"
            log(_logger, logging.WARNING, "session_not_killed", words)

    async def _is_old(self, row: Mapping[str, Any]) -> bool:
        stamped = row.get("beatAt")
        now = (await self._database.command({"hello": 1}, admin=True)).get("localTime")
        if not (isinstance(stamped, datetime) and isinstance(now, datetime)):
            return False
        return (now.replace(tzinfo=UTC) - stamped).total_seconds() >= TTL

    async def _me(self) -> dict[str, object]:
        session, space, pid = await self._database.writer(), await asyncio.to_thread(process_space), os.getpid()
        started = await asyncio.to_thread(start_mark, pid)
        return {"host": space.partition("/")[0], "space": space, "pid": pid, "started": started, "session": session}

    def _silent(self, row: Mapping[str, Any]) -> bool:
        """Whether the row has not changed for the whole TTL while this process watched it."""
        now, mark = self._clock.monotonic(), (row["epoch"], row["beat"])
        if self._seen is None or self._seen[0] != mark:
            self._seen = (mark, now)
            return False
        return now - self._seen[1] >= TTL


def _above_all(at: Timestamp) -> int:
    """An epoch above each that a lease had whose row was gone at that time.

    It began the same way, at an earlier operation time; and each takeover since, which raised it by one, was a write,
    which moves that time on: a server does less than a million (2^20) of them a second.
    """
    return (at.time << 20) + at.inc


async def _gone(holder: Mapping[str, Any]) -> bool:
    """Whether the holder ran where this process runs and is not there any more.

    The system is asked beside the event loop: without /proc that is a program of its own.
    """
    if holder["space"] != await asyncio.to_thread(process_space):
        return False
    return not await asyncio.to_thread(same_process, int(holder["pid"]), str(holder["started"]))
