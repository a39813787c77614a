"""A real HTTP server on loopback that answers like OpenRouter's `/embeddings`, with faults on order.

In process:

    async with FakeEmbedder(dimensions=8) as server:
        server.script[1] = Fault("status", status=429, headers={"Retry-After": "2"})   # the second call
        ... OpenRouterClient(model, "key", server.base_url)

As a child process, `python -m tests.support.fake_embedder --port 0 [--dimensions N] [--script JSON]` prints one JSON
line `{"port", "base_url"}` and serves until it is terminated. `GET /counters` answers `{"calls", "texts",
"connections", "accepted", "refused"}`, and `POST /script` takes `{"<call number>": {"kind": …}, "*": …}` (call numbers
from 0, counted over all calls so far; `*` is every call that has no number of its own).

A vector depends on the text alone (its SHA-256 seeds it) and has unit length, so equal texts have equal vectors
everywhere.
"""

import argparse
import asyncio
import contextlib
import gzip
import hashlib
import json
import signal
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

import numpy as np

from tests.support.embedder_faults import Fault, apply, gzip_bomb
from tests.support.provider_limit import ProviderLimit


def vector_of(text: str, dimensions: int) -> list[float]:
    """The fake's vector of a text."""
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    numbers = np.random.default_rng(seed).standard_normal(dimensions)
    return [float(number) for number in (numbers / np.linalg.norm(numbers)).astype(np.float32)]


@dataclass(frozen=True, slots=True)
class Received:
    """One call as it came in; `proxied` tells an absolute request target, as a proxy gets."""

    path: str
    headers: Mapping[str, str]
    payload: Mapping[str, Any]
    proxied: bool


class FakeEmbedder:
    """The server. `script` maps a call number (from 0) to its fault; `always` is for every other call."""

    def __init__(self, *, dimensions: int = 8, model: str | None = None, cost_per_token: float = 2e-8) -> None:
        self.dimensions = dimensions
        self.model = model
        self.cost_per_token = cost_per_token
        self.script: dict[int, Fault] = {}
        self.always: Fault | None = None
        self.received: list[Received] = []
        self.texts: list[str] = []
        self.connections = 0
        self.arrived = asyncio.Event()  # set by every embedding call
        self.close_idle = False  # close each connection after its answer without saying so beforehand
        self.limit = ProviderLimit()
        self.at_once = self.most_at_once = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def calls(self) -> int:
        """How many embedding calls came in, failed ones too."""
        return len(self.received)

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def base_url(self) -> str:
        """What OPENROUTER_BASE_URL is set to."""
        return f"http://127.0.0.1:{self.port}/api/v1"

    async def start(self, port: int = 0) -> None:
        """Listen on loopback; 0 takes a free port."""
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", port)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._request(reader, writer):
                if self.close_idle:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if target.endswith("/counters") and method == "GET":
            counters = {"calls": self.calls, "texts": len(self.texts), "connections": self.connections}
            counters |= {"accepted": self.limit.accepted, "refused": self.limit.refused}
            return await _answer(writer, 200, json.dumps(counters).encode())
        if target.endswith("/script"):
            self.load_script(json.loads(body))
            return await _answer(writer, 200, b"{}")
        if not target.endswith("/embeddings"):
            return await _answer(writer, 404, b'{"error":{"code":404,"message":"no such path"}}')
        call = Received(target, headers, json.loads(body), not target.startswith("/"))
        number = self.calls
        self.received.append(call)
        self.arrived.set()
        fault = self.script.get(number, self.always)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if fault is None:
                return await _answer(writer, 200, self._right(call))
            return await self._faulty(fault, call, writer)
        finally:
            self.at_once -= 1

    def load_script(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        """Take faults as JSON has them."""
        for key, fields in raw.items():
            if key == "*":
                self.always = Fault(**fields) if fields else None
            else:
                self.script[int(key)] = Fault(**fields)

    def _right(self, call: Received, change: str = "", void: str = "") -> bytes:
        """The right answer to a call, or one with a change in it, or with zeros for texts that contain `void`."""
        texts = call.payload["input"]
        self.texts.extend(texts)
        width = call.payload.get("dimensions", self.dimensions)
        # A model named other/… has vectors of its own; those of all other names are the same.
        named = str(call.payload["model"])
        salt = f"{named}: " if named.startswith("other/") else ""
        data = [
            {"object": "embedding", "index": i, "embedding": vector_of(salt + text, width)}
            for i, text in enumerate(texts)
        ]
        for row, text in zip(data, texts, strict=True):
            if void and void in text:
                row["embedding"] = [0.0] * width
        model = self.model or call.payload["model"]
        tokens = _words(call)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens, "cost": tokens * self.cost_per_token}
        answer: dict[str, Any] = {"object": "list", "data": data, "model": model, "id": "gen-fake", "usage": usage}
        apply(change, answer)
        return json.dumps(answer).encode()

    async def _faulty(self, fault: Fault, call: Received, writer: asyncio.StreamWriter) -> bool:
        """Answer whole HTTP that is wrong in itself; anything below HTTP is broken elsewhere."""
        if (refusal := self._refusal(fault, call)) is not None:
            return await _answer(writer, *refusal)
        body, headers = b"", dict(fault.headers)
        match fault.kind:
            case "body":
                body = fault.body.encode()
            case "patch":
                body = self._right(call, fault.change)
            case "gzip":
                body, headers = gzip.compress(self._right(call)), {"Content-Encoding": "gzip"}
            case "gzip_bomb":
                body, headers = gzip_bomb(), {"Content-Encoding": "gzip"}
            case "void":
                body = self._right(call, void=fault.word)
            case "poison" | "slow" | "cap" | "limited":
                await asyncio.sleep(fault.seconds if fault.kind in {"slow", "limited"} else 0)
                body = self._right(call)
            case _:
                await self._broken(fault, self._right(call), writer)
                return False
        return await _answer(writer, 200, body, headers)

    def _refusal(self, fault: Fault, call: Received) -> tuple[int, bytes, Mapping[str, str]] | None:
        """The error answer to a call: status, body, headers; None when it is let through."""
        match fault.kind:
            case "status":
                return fault.status, fault.body.encode(), fault.headers
            case "poison" if any(fault.word in text for text in call.payload["input"]):
                status = 400 if fault.status == HTTPStatus.OK else fault.status
                return status, f'{{"error":{{"code":{status},"message":"bad input"}}}}'.encode(), {}
            case "cap" if _words(call) > fault.tokens:
                return 400, b'{"error":{"code":400,"message":"too many tokens in this request"}}', {}
            case "limited" if (wait := self._over(fault, call)) > 0:
                return 429, b'{"error":{"code":429,"message":"slowly"}}', {"Retry-After": f"{wait:.3f}"}
            case _:
                return None

    def _over(self, fault: Fault, call: Received) -> float:
        now = asyncio.get_running_loop().time()
        return self.limit.wait(_words(call), now, tokens=fault.tokens, requests=fault.requests, per=fault.per)

    async def _broken(self, fault: Fault, body: bytes, writer: asyncio.StreamWriter) -> None:
        """Faults below HTTP: what is sent before the connection is reset, stalls, drips or ends."""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        half = head + body[: len(body) // 2]
        sent = {
            "reset_inside": half,
            "reset_after": head + body,
            "short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}   ",
            "stall_headers": head,
            "stall_body": half,
            "big_header": b"HTTP/1.1 200 OK\r\nX-Big: " + b"a" * (10 << 20) + b"\r\n\r\n",
            "endless": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[",
        }
        await _send(writer, sent.get(fault.kind, b""))
        if fault.kind == "reset_after":  # without this a close is an orderly one, after all
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if fault.kind.startswith("reset"):
            writer.transport.abort()
        elif fault.kind.startswith("stall"):
            await asyncio.Event().wait()
        elif fault.kind == "drip":
            whole = head + body
            for start in range(0, len(whole), fault.size):
                await _send(writer, whole[start : start + fault.size])
                await asyncio.sleep(fault.seconds)
        while fault.kind == "endless":
            await _send(writer, b"1," * 4096)


def _words(call: Received) -> int:
    """What this server counts as tokens."""
    return sum(len(text.split()) for text in call.payload["input"])


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def _answer(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> bool:
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
    reason = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Odd"
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in fields.items())]
    await _send(writer, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)
    return True


async def _serve(port: int, dimensions: int, script: Mapping[str, Mapping[str, Any]]) -> None:
    server = FakeEmbedder(dimensions=dimensions)
    server.load_script(script)
    await server.start(port)
    print(json.dumps({"port": server.port, "base_url": server.base_url}), flush=True)  # noqa: T201 the one line
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    await over.wait()
    await server.stop()


def main() -> None:
    """Serve until terminated."""
    parser = argparse.ArgumentParser(description="A fake /embeddings endpoint on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--dimensions", type=int, default=1536, help="where the request names none")
    parser.add_argument("--script", type=json.loads, default={}, help='JSON: {"0": {"kind": "status", "status": 500}}')
    arguments = parser.parse_args()
    asyncio.run(_serve(arguments.port, arguments.dimensions, arguments.script))


if __name__ == "__main__":
    main()
