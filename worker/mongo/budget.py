"""What embedding has cost, a row a UTC day: implements `worker.ports.SpendBook`.

    {_id: "2026-11-30", epoch, countedUsd, open: {"<epoch>-<purse>-<number>": dollars}}

`countedUsd` includes what is open. Each write matches only rows of its own or an older epoch, as the checkpoint's do.
"""

from collections.abc import Mapping
from typing import Any

from worker.errors import Conflict, FencedOff
from worker.model import Leadership, Reservation
from worker.mongo.driver import Database
from worker.mongo.names import BUDGET


class MongoBudget:
    """Spending in `freshness_budget`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def counted(self, day: str) -> float:
        """US dollars counted of a day."""
        row = await self._database.find_one(BUDGET, {"_id": day}, {"countedUsd": 1})
        return 0.0 if row is None else max(0.0, float(row["countedUsd"]))

    async def reserve(self, reservation: Reservation, limit: float, leadership: Leadership) -> bool:
        """Count a reservation if it fits under the limit; the database compares and counts in one step.

        Raises Conflict when the day's row came to be in this very moment: it may fit all the same.
        """
        if reservation.usd > limit:
            return False
        name = f"open.{reservation.id}"
        fits = {"countedUsd": {"$lte": limit - reservation.usd}, name: {"$exists": False}}
        change = {"$set": {"epoch": leadership.epoch, name: reservation.usd}, "$inc": {"countedUsd": reservation.usd}}
        if await self._database.update(BUDGET, _mine(reservation, leadership) | fits, change):
            return True
        row = await self._database.find_one(BUDGET, {"_id": reservation.day})
        if row is None:
            return await self._begin(reservation, leadership)
        _check(row, leadership)
        if reservation.id in row["open"]:
            return True  # the answer to an earlier try was lost
        if row["countedUsd"] <= limit - reservation.usd:
            message = f"the row of {reservation.day} changed meanwhile"
            raise Conflict(message)
        return False

    async def settle(self, reservation: Reservation, usd: float, leadership: Leadership) -> None:
        """Put the true cost in the place of the reservation, once."""
        name = f"open.{reservation.id}"
        change = {"$unset": {name: ""}, "$inc": {"countedUsd": usd - reservation.usd}}
        mine = _mine(reservation, leadership) | {name: {"$exists": True}}
        if await self._database.update(BUDGET, mine, change):
            return
        row = await self._database.find_one(BUDGET, {"_id": reservation.day}, {"epoch": 1})
        if row is not None:
            _check(row, leadership)

    async def _begin(self, reservation: Reservation, leadership: Leadership) -> bool:
        row = {"_id": reservation.day, "epoch": leadership.epoch, "countedUsd": reservation.usd}
        await self._database.insert(BUDGET, {**row, "open": {reservation.id: reservation.usd}})
        return True


def _mine(reservation: Reservation, leadership: Leadership) -> dict[str, Any]:
    return {"_id": reservation.day, "epoch": {"$lte": leadership.epoch}}


def _check(row: Mapping[str, Any], leadership: Leadership) -> None:
    if row["epoch"] > leadership.epoch:
        message = "another process holds the lease now: this one spends nothing more"
        raise FencedOff(message)
