"""The generations of chunks in `knowledge_pins`: implements `worker.ports.Pins`.

All of them are one row, `active`: its own fields name the pin that is searched, as the brain reads it, `beside` the
other generation with its role, `leaving` the collections to be removed. So a switch is one write, and a rollback too.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from pymongo import UpdateOne
from pymongo.asynchronous.database import AsyncDatabase

from brain.knowledge.connect import Row
from brain.knowledge.pin import ACTIVE, PINS, Model, Pin
from brain.knowledge.pins import ensure_pin
from worker.errors import ConfigurationFault, NothingPinned
from worker.generations import Act, Generations, Role, changed
from worker.model import Leadership
from worker.mongo.driver import Database
from worker.mongo.fence import fence
from worker.mongo.transactions import Session

_ROLES: Final[Mapping[object, Role]] = {"next": "next", "previous": "previous"}


async def ensure_pinned(database: Database, model: Model) -> None:
    """Where nothing was ever pinned, pin this model in the first collection."""
    await ensure_pin(cast("AsyncDatabase[Row]", database.raw), model)


class MongoPins:
    """The row of the generations. `admit` raises PinRefused for such as this process could not lead with."""

    def __init__(self, database: Database, admit: Callable[[Generations], None] = lambda _after: None) -> None:
        self._database = database
        self._admit = admit

    async def load(self) -> Generations:
        """Those that live now; raises NothingPinned, and ConfigurationFault for a row that is none of ours."""
        return _generations(await self._database.find_one(PINS, {"_id": ACTIVE}))

    async def found(self) -> Generations | None:
        """As `load`; None where nothing was ever pinned."""
        row = await self._database.find_one(PINS, {"_id": ACTIVE})
        return None if row is None else _generations(row)

    async def change(self, act: Act, pin: Pin, leadership: Leadership, turn: int | None = None) -> Generations:
        """Do it; see the port."""

        async def body(session: Session) -> Generations:
            await fence(self._database, leadership, session)
            before = _generations(await self._database.find_one(PINS, {"_id": ACTIVE}, session=session))
            after = changed(before, act, pin, turn)
            if after != before:
                self._admit(after)
                await self._database.bulk(PINS, [UpdateOne({"_id": ACTIVE}, _change(after))], session=session)
            return after

        return await self._database.transaction(body)

    async def clear(self, leadership: Leadership) -> Sequence[str]:
        """Remove what is `leaving`, and forget it when it is gone: a crash in between does it again."""
        leaving = (await self.load()).leaving
        for collection in leaving:
            await self._forget(collection, leadership, gone=False)
            await self._database.drop(collection)
            await self._forget(collection, leadership, gone=True)
        return leaving

    async def _forget(self, collection: str, leadership: Leadership, *, gone: bool) -> None:
        """With `gone`, take the collection off the list; without, only see that this process still may."""

        async def body(session: Session) -> None:
            await fence(self._database, leadership, session)
            if gone:
                pull = UpdateOne({"_id": ACTIVE}, {"$pull": {"leaving": collection}})
                await self._database.bulk(PINS, [pull], session=session)

        await self._database.transaction(body)


def _change(generations: Generations) -> dict[str, Any]:
    """The update of the row; other fields stay."""
    leaving, turn = list(generations.leaving), generations.turn
    fields: dict[str, Any] = {**generations.active.as_row(), "leaving": leaving, "turn": turn}
    if generations.beside is None:
        return {"$set": fields, "$unset": {"beside": ""}}
    return {"$set": {**fields, "beside": {**generations.beside.as_row(), "role": generations.role}}}


def _generations(row: Mapping[str, Any] | None) -> Generations:
    if row is None:
        message = "nothing is pinned in this database: start the worker once (`python -m worker run`)"
        raise NothingPinned(message)
    try:
        beside = row.get("beside")
        other = None if beside is None else Pin.from_row(beside)
        role = None if beside is None else _ROLES[beside["role"]]
        leaving = tuple(str(name) for name in row.get("leaving") or ())
        return Generations(Pin.from_row(row), other, role, leaving, int(row.get("turn") or 0))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        message = f"the row `{ACTIVE}` of {PINS} is damaged (`beside`, `leaving`): repair it by hand"
        raise ConfigurationFault(message) from error
