"""The server: connections, its clock, sessions and transactions, and the hands of the test that plays the backend."""

import asyncio
import itertools
import threading
import time
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

import bson
from bson import Timestamp

from tests.support.fake_mongod import wire
from tests.support.fake_mongod.commands import name_of, perform
from tests.support.fake_mongod.faults import Cut, Fail, Fault, ItemsFail, LateFail, Script, Silence
from tests.support.fake_mongod.history import Cursor, Event, History
from tests.support.fake_mongod.search import SearchIndexes
from tests.support.fake_mongod.store import Store
from tests.support.fake_mongod.store import name_of as id_name

Row = dict[str, Any]

DATABASE: Final = "fake"
_WRITES: Final = frozenset({"insert", "update", "delete"})


class FakeMongod:
    """A primary of a replica set of one; of none when `replica_set` is None.

    `idle` is how many seconds a getMore without events is held, `batch` how many one tells at most. `seen` holds every
    command but the monitors' hello. While it is `down` it hangs up on everybody who connects. Documents whose
    id is in `too_large` it cannot send. A cursor that is open here goes on silently where the history is gone, as on
    SecantusDB: `build` says which server it claims to be.
    """

    def __init__(self, *, replica_set: str | None = "fake", idle: float = 0.02) -> None:
        self.replica_set = replica_set
        self.idle = idle
        self.script = Script()
        self.store = Store()
        self.search = SearchIndexes()
        self.now = Timestamp(int(time.time()), 1)
        self.history = History(self.now)
        self.shows_history = True
        self.build: Row = {"version": "8.0.0"}
        self.too_large: set[object] = set()
        self.down = False
        self.batch = 1000
        self.cursors: dict[int, Cursor] = {}
        self.seen: list[Row] = []
        self.arrived = asyncio.Event()
        self.address = ""
        self._numbers = itertools.count(1000)
        self._transactions: dict[bytes, dict[str, dict[bytes, Row]]] = {}
        self._answered: dict[tuple[bytes, int], Row] = {}
        # A loop of its own: motor's close() blocks the caller's until the server has answered.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fake_mongod", daemon=True)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._cut_all()

    async def _cut_all(self) -> None:
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    @property
    def uri(self) -> str:
        """Where a driver finds it."""
        options = f"?replicaSet={self.replica_set}&heartbeatFrequencyMS=500" if self.replica_set else ""
        return f"mongodb://{self.address}/{options}"

    def disconnect(self) -> None:
        """Cut every connection there is."""
        self._run(self._cut_all())

    # --- the backend's hands ---

    def tick(self, seconds: int = 0) -> Timestamp:
        """The next time of its clock, so many seconds on."""
        self.now = Timestamp(self.now.time + seconds, 1 if seconds else self.now.inc + 1)
        return self.now

    def tell(self, operation: str, collection: str | None = None, *, fragments: int = 1, **fields: Any) -> Event:  # noqa: ANN401 - an event's own
        """Append an event of this kind to the history."""
        ns = {"db": DATABASE} | ({"coll": collection} if collection is not None else {})
        return self.append(Event(self.tick(), {"operationType": operation, "ns": ns, **fields}, fragments))

    def append(self, event: Event) -> Event:
        """Append an event as it is, its time included; its time becomes the server's when it is later."""
        self.history.events.append(event)
        self.now = max(self.now, event.at)
        self._loop.call_soon_threadsafe(self.arrived.set)
        return event

    def write(self, collection: str, row: Row, *, fragments: int = 1) -> Event:
        """Insert or replace a document, and tell."""
        rows = self.store.rows(collection)
        operation = "replace" if id_name(row["_id"]) in rows else "insert"
        rows[id_name(row["_id"])] = dict(row)
        return self.tell(operation, collection, documentKey={"_id": row["_id"]}, fragments=fragments)

    def delete(self, collection: str, id_: object) -> Event:
        """Delete a document, and tell."""
        self.store.rows(collection).pop(id_name(id_), None)
        return self.tell("delete", collection, documentKey={"_id": id_})

    def forget(self) -> None:
        """Lose the history up to now: every position that is there is too old."""
        self.history.events.clear()
        self.history.oldest = self.tick(1)

    def asked(self, name: str) -> list[Row]:
        """The commands of that name, in their order."""
        return [command for command in self.seen if name_of(command) == name]

    # --- what the commands use ---

    def open_cursor(self, cursor: Cursor) -> int:
        """A cursor's number."""
        number = next(self._numbers)
        self.cursors[number] = cursor
        return number

    def commit(self, command: Row) -> None:
        """Keep what the session's transaction wrote; again when it is asked again."""
        self._transactions.pop(bson.encode(command["lsid"]), None)

    def abort(self, command: Row) -> None:
        """Go back to before the session's transaction."""
        self.store.collections.update(self._transactions.pop(bson.encode(command["lsid"]), {}))

    # --- connections ---

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.down:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while True:
                message = await wire.read(reader)
                if not await self._serve(message, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _serve(self, message: wire.Message, writer: asyncio.StreamWriter) -> bool:
        """Answer a command; whether the connection goes on."""
        name = name_of(message.command)
        if name != "hello":
            self.seen.append(message.command)
        fault = self.script.take(name)
        if fault == Cut():
            return False
        if fault == Silence():
            await asyncio.Event().wait()
        reply = await self._reply(name, message.command, fault)
        if fault == Cut(after=True):
            return False
        if not message.silent:
            writer.write(wire.answer(message, reply))
            await writer.drain()
        return True

    async def _reply(self, name: str, command: Row, fault: Fault | None) -> Row:
        if isinstance(fault, Fail):
            reply = fault.reply(name)
        elif isinstance(fault, ItemsFail):
            reply = fault.reply()
        else:
            reply = await self._perform(name, command)
            if isinstance(fault, LateFail):
                reply = reply | fault.added()
        reply.setdefault("ok", 1.0)
        clock = {"clusterTime": self.now, "signature": {"hash": b"\0" * 20, "keyId": bson.Int64(0)}}
        return reply if self.replica_set is None else {**reply, "operationTime": self.now, "$clusterTime": clock}

    async def _perform(self, name: str, command: Row) -> Row:
        """Do it, but a write that a driver tries again only once."""
        if name in _WRITES:
            self.tick()
            if "autocommit" in command:
                before = self._transactions.setdefault(bson.encode(command["lsid"]), {})
                before.setdefault(command[name], self.store.copy(command[name]))
        if "txnNumber" not in command or "autocommit" in command:
            return dict(await perform(self, command))
        mark = (bson.encode(command["lsid"]), int(command["txnNumber"]))
        if mark not in self._answered:
            self._answered[mark] = await perform(self, command)
        return dict(self._answered[mark])
