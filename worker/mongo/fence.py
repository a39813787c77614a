"""The fence: a write counts only while its leadership does, and the database decides that, not a clock."""

from pymongo import UpdateOne

from worker.errors import FencedOff, LeaseGone
from worker.model import Leadership
from worker.mongo.driver import Database
from worker.mongo.names import LEASE_ID, LEASES
from worker.mongo.transactions import Session


async def fence(database: Database, leadership: Leadership, session: Session) -> None:
    """Touch the lease inside a transaction, so that a takeover at the same time makes one of the two fail.

    Raises FencedOff when another epoch holds the lease, LeaseGone when there is none.
    """
    touch = UpdateOne({"_id": LEASE_ID, "epoch": leadership.epoch}, {"$inc": {"writes": 1}})
    if not await database.bulk(LEASES, [touch], session=session):
        raise await refused(database, session)


async def refused(database: Database, session: Session | None = None) -> FencedOff:
    """Why a write under a lease found no row of its epoch: another process has it, or it is gone."""
    if await database.find_one(LEASES, {"_id": LEASE_ID}, {"_id": 1}, session=session) is None:
        return LeaseGone("the lease is gone: the database was dropped, or somebody removed the row")
    return FencedOff("another process holds the lease now: this one's writes are refused")
