"""What each command does when nothing goes wrong."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from bson import Int64, Timestamp

from tests.support.fake_mongod.aggregate import Item, Refusal, run
from tests.support.fake_mongod.faults import Fail
from tests.support.fake_mongod.history import ALL, Cursor, Place, place_of, token
from tests.support.fake_mongod.search import check_place
from tests.support.fake_mongod.store import DUPLICATE, ordered, projected

if TYPE_CHECKING:
    from tests.support.fake_mongod.server import FakeMongod

Row = dict[str, Any]
Handler = Callable[["FakeMongod", Row], Awaitable[Row]]
STREAM: Final = "$changeStream"


def name_of(command: Mapping[str, Any]) -> str:
    """The name of a command; `watch` for an aggregate that opens a change stream, `probe` where it is only to open."""
    name = next(iter(command))
    if name == "aggregate" and command["pipeline"] and STREAM in command["pipeline"][0]:
        return "probe" if command["cursor"].get("batchSize", 2) <= 1 else "watch"
    return "hello" if name in {"ismaster", "isMaster"} else name


async def perform(server: "FakeMongod", command: Row) -> Row:
    """Do it; the answer."""
    handler = _HANDLERS.get(name_of(command))
    try:
        return Fail(59).reply("") if handler is None else await handler(server, command)
    except Refusal as refusal:
        return refusal.reply()


async def _hello(server: "FakeMongod", _: Row) -> Row:
    row: Row = {
        "isWritablePrimary": True,
        "ismaster": True,
        "helloOk": True,
        "maxBsonObjectSize": 16_777_216,
        "maxMessageSizeBytes": 48_000_000,
        "maxWriteBatchSize": 100_000,
        "localTime": datetime.now(UTC),
        "logicalSessionTimeoutMinutes": 30,
        "minWireVersion": 0,
        "maxWireVersion": 21,
        "readOnly": False,
    }
    if server.replica_set is None:
        return row
    return {
        **row,
        "setName": server.replica_set,
        "setVersion": 1,
        "hosts": [server.address],
        "primary": server.address,
        "me": server.address,
        "secondary": False,
    }


async def _build_info(server: "FakeMongod", _: Row) -> Row:
    return dict(server.build)


async def _done(_: "FakeMongod", __: Row) -> Row:
    return {}


async def _find(server: "FakeMongod", command: Row) -> Row:
    if command["find"] == "oplog.rs":
        rows: list[Row] = [{"ts": server.history.oldest}] if server.shows_history else []
    else:
        rows = server.store.find(command["find"], command.get("filter", {}))
        rows = ordered(rows, command.get("sort", {}))
        rows = rows[: command.get("limit") or None]
        whole = not command.get("projection")
        if whole and any(row["_id"] == id_ for row in rows for id_ in server.too_large):
            return Fail(10334).reply("find")
    batch = [projected(row, command.get("projection")) for row in rows]
    return {"cursor": {"id": Int64(0), "ns": f"{command['$db']}.{command['find']}", "firstBatch": batch}}


async def _count(server: "FakeMongod", command: Row) -> Row:
    return {"n": len(server.store.rows(command["count"]))}


async def _insert(server: "FakeMongod", command: Row) -> Row:
    for index, row in enumerate(command["documents"]):
        if not server.store.insert(command["insert"], row):
            return {"n": index, "writeErrors": [{"index": index, "code": 11000, "errmsg": "it is there"}]}
    return {"n": len(command["documents"])}


async def _update(server: "FakeMongod", command: Row) -> Row:
    matched, upserted = 0, list[Row]()
    for index, change in enumerate(command["updates"]):
        count, made = server.store.update(command["update"], change)
        if made is DUPLICATE:
            error = {"index": index, "code": 11000, "errmsg": "it is there"}
            return {"n": matched, "nModified": matched, "writeErrors": [error]}
        matched += count
        if made is not None:
            upserted.append({"index": index, "_id": made})
    return {"n": matched, "nModified": matched} | ({"upserted": upserted} if upserted else {})


async def _delete(server: "FakeMongod", command: Row) -> Row:
    return {"n": sum(server.store.delete(command["delete"], one["q"], one["limit"]) for one in command["deletes"])}


async def _aggregate(server: "FakeMongod", command: Row) -> Row:
    name, stages = command["aggregate"], command["pipeline"]
    check_place(stages, command.get("readConcern", {}).get("level"))
    first, rows = (next(iter(stages[0])) if stages else ""), server.store.find(name, {})
    if first == "$listSearchIndexes":
        listed = server.search.listed(name, stages[0][first], rows)
        found = run(stages[1:], [Item(row, {}) for row in listed])
    elif first == "$vectorSearch":
        found = run(stages[1:], server.search.found(name, stages[0][first], rows))
    else:
        found = run(stages, [Item(row, {}) for row in rows])
    return {"cursor": {"id": Int64(0), "ns": f"{command['$db']}.{name}", "firstBatch": found}}


async def _create_search_indexes(server: "FakeMongod", command: Row) -> Row:
    name = command["createSearchIndexes"]
    if name not in server.store.collections:
        raise Refusal(26, "collection does not exist")
    return server.search.create(name, command["indexes"])


async def _update_search_index(server: "FakeMongod", command: Row) -> Row:
    return server.search.update(command["updateSearchIndex"], command["name"], command["definition"])


async def _create_indexes(server: "FakeMongod", command: Row) -> Row:
    server.store.rows(command["createIndexes"])  # makes the collection
    return {}


async def _watch(server: "FakeMongod", command: Row) -> Row:
    stages: list[Row] = command["pipeline"]
    try:
        start = _start(server, stages[0][STREAM])
    except ValueError:
        return Fail(50811).reply("")
    if not server.history.has(start):
        return Fail(286).reply("")
    every = {name: stage[name] for stage in stages for name in stage}
    number = server.open_cursor(Cursor(start, every.get("$match", {}), every.get("$project", {})))
    return _batch(server, command, number, [], "firstBatch")


def _start(server: "FakeMongod", options: Row) -> Place:
    for name in ("startAfter", "resumeAfter"):
        if name in options:
            return place_of(options[name])
    at: Timestamp = options.get("startAtOperationTime", server.now)
    return (at.time, at.inc - 1, ALL)


async def _get_more(server: "FakeMongod", command: Row) -> Row:
    """The next events; without any, an empty batch after a while that is shorter than what the driver asks for."""
    number = int(command["getMore"])
    cursor = server.cursors.get(number)
    if cursor is None:
        return Fail(43).reply("getMore")
    batch = server.history.after(cursor, server.now, server.batch)
    if not batch:
        server.arrived.clear()
        try:
            async with asyncio.timeout(min(command.get("maxTimeMS", 1000) / 1000, server.idle)):
                await server.arrived.wait()
        except TimeoutError:
            pass
        if number not in server.cursors:  # killed meanwhile
            return Fail(43).reply("getMore")
        batch = server.history.after(cursor, server.now, server.batch)
    return _batch(server, command, number, batch, "nextBatch")


def _batch(server: "FakeMongod", command: Row, number: int, batch: list[Row], name: str) -> Row:
    cursor = server.cursors[number]
    if cursor.ended:
        del server.cursors[number]
        number = 0
    place = token(cursor.place)
    collection = f"{command['$db']}.$cmd.aggregate"
    return {"cursor": {"id": Int64(number), "ns": collection, name: batch, "postBatchResumeToken": place}}


async def _kill_cursors(server: "FakeMongod", command: Row) -> Row:
    killed = [number for number in command["cursors"] if server.cursors.pop(int(number), None) is not None]
    return {"cursorsKilled": killed, "cursorsNotFound": [], "cursorsAlive": [], "cursorsUnknown": []}


async def _commit(server: "FakeMongod", command: Row) -> Row:
    server.commit(command)
    return {}


async def _abort(server: "FakeMongod", command: Row) -> Row:
    server.abort(command)
    return {}


_HANDLERS: Final[Mapping[str, Handler]] = {
    "hello": _hello,
    "ping": _done,
    "buildInfo": _build_info,
    "endSessions": _done,
    "createIndexes": _create_indexes,
    "aggregate": _aggregate,
    "createSearchIndexes": _create_search_indexes,
    "updateSearchIndex": _update_search_index,
    "find": _find,
    "count": _count,
    "insert": _insert,
    "update": _update,
    "delete": _delete,
    "watch": _watch,
    "probe": _watch,
    "getMore": _get_more,
    "killCursors": _kill_cursors,
    "commitTransaction": _commit,
    "abortTransaction": _abort,
}
