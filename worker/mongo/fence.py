"""The fence: a write counts only while its leadership does, and the database decides that, not a clock."""

from pymongo import UpdateOne

from worker.errors import FencedOff
from worker.model import Leadership
from worker.mongo.driver import Database, Session
from worker.mongo.names import LEASE_ID, LEASES


async def fence(database: Database, leadership: Leadership, session: Session) -> None:
    """Touch the lease inside a transaction, so that a takeover at the same time makes one of the two fail.

    Raises FencedOff when another epoch holds the lease.
    """
    touch = UpdateOne({"_id": LEASE_ID, "epoch": leadership.epoch}, {"$inc": {"writes": 1}})
    if not await database.bulk(LEASES, [touch], session=session):
        message = "another process holds the lease now: this one's writes are refused"
        raise FencedOff(message)
