"""The one HTTP seam: a JSON request, one bounded answer, our own errors.

The client is httpx2, or httpx where httpx2 is absent or httpx is asked for: the same API, continued. Every call has one
deadline over connecting, sending and reading (a read timeout alone never ends a peer that drips bytes), a cap on the
bytes of the answer, follows no redirect, takes no proxy from the environment, and sends secrets in headers only.
"""

import asyncio
import importlib
import ipaddress
import json
import logging
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from brain.knowledge.errors import ConfigurationFault, Malformed, NotSent, Unreachable

if TYPE_CHECKING:
    import httpx2

Library = Literal["httpx2", "httpx"]

CONNECT_SECONDS: Final = 10.0  # a host that does not even accept is gone; the rest of the deadline is for the answer
_CONNECTIONS: Final = 20
_LOGGERS: Final = ("httpx2", "httpcore2", "httpx", "httpcore")  # at INFO and DEBUG they write URLs and headers


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer: its status, its headers under lower-case names, its body decompressed.

    `resent`: a kept connection died under the request, so it was sent again and may have been served twice.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    resent: bool = False


class HttpClient:
    """Requests to one base URL, over kept connections. Belongs to the event loop that first uses it."""

    def __init__(self, base_url: str, headers: Mapping[str, str] | None = None, library: Library | None = None) -> None:
        """Check the settings; connects to nothing.

        Raises ConfigurationFault for a URL that is no https URL (plain http is for loopback), that carries
        credentials or a query, for a header that cannot be sent, or when no HTTP library is installed.
        """
        self._base = _checked_base(base_url)
        self._headers = _checked_headers(headers or {})
        self._library = _load(library)
        self._opening = asyncio.Lock()
        self._client: httpx2.AsyncClient | None = None

    async def post_json(
        self,
        path: str,
        payload: Mapping[str, object],
        deadline_seconds: float,
        byte_cap: int,
    ) -> HttpReply:
        """Send the payload to base URL + path; `byte_cap` bounds the body, on the wire and decompressed.

        Raises NotSent when no connection comes about, Unreachable when there is no whole answer within the deadline,
        Malformed when the answer breaks the protocol, breaks off, is longer than the cap, or is a redirect. Any other
        status is returned.
        """
        body = json.dumps(payload, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")
        call = _Call(self._base + path, deadline_seconds, byte_cap)
        try:
            async with asyncio.timeout(deadline_seconds):
                return await self._post(call, body)
        except TimeoutError as exc:
            message = f"{call.url} gave no whole answer within {deadline_seconds:g} s: try again later"
            raise Unreachable(message) from exc

    async def close(self) -> None:
        """Close the kept connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _post(self, call: "_Call", body: bytes) -> HttpReply:
        """One request; a second one when a kept connection turns out to be closed before it answered anything.

        A peer may close an idle connection at any moment. That says nothing about its health, and nothing was
        processed as far as one can know, so it must not count as a failed attempt.
        """
        try:
            return await self._exchange(call, body)
        except self._library.TransportError as exc:
            if call.reply_began or call.connected:
                raise self._wrapped(call, exc) from exc
        second = _Call(call.url, call.deadline_seconds, call.byte_cap)
        try:
            return replace(await self._exchange(second, body), resent=True)
        except self._library.TransportError as exc:
            error = self._wrapped(second, exc)
            if isinstance(error, NotSent):  # this time; the first one may have been served
                raise Unreachable(str(error)) from exc
            raise error from exc

    async def _exchange(self, call: "_Call", body: bytes) -> HttpReply:
        client = await self._opened()
        timeout = self._library.Timeout(None, connect=CONNECT_SECONDS)
        request = client.build_request(
            "POST", call.url, content=body, timeout=timeout, extensions={"trace": call.trace}
        )
        response = await client.send(request, stream=True)
        call.reply_began = True
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            if response.has_redirect_location:
                message = (
                    f"{call.url} answered with a redirect ({response.status_code}), which is not followed: "
                    "check the base URL"
                )
                raise Malformed(message)
            raw = await _read(response.aiter_raw(), call)
            return HttpReply(response.status_code, headers, _decoded(raw, headers.get("content-encoding", ""), call))
        finally:
            await response.aclose()

    def _wrapped(self, call: "_Call", exc: Exception) -> Unreachable | Malformed:
        """Our error for one of the library's; the library's own words may quote a peer, so only its type is told."""
        what = type(exc).__name__
        if call.reply_began:
            return Malformed(f"{call.url} broke off within its answer ({what}): try again later")
        library = self._library
        unsent = isinstance(exc, (library.ConnectError, library.ConnectTimeout, library.PoolTimeout))
        message = f"{call.url} did not answer ({what}): check the network and the base URL, or try again later"
        return NotSent(message) if unsent else Unreachable(message)

    async def _opened(self) -> "httpx2.AsyncClient":
        """The library's client, built in a thread: reading the certificates takes 20 to 50 ms."""
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._build)
            return self._client

    def _build(self) -> "httpx2.AsyncClient":
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.WARNING)
        headers = {"accept": "application/json", "content-type": "application/json", "accept-encoding": "gzip"}
        client: httpx2.AsyncClient = self._library.AsyncClient(
            headers={**headers, **self._headers},
            follow_redirects=False,
            trust_env=False,
            limits=self._library.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
        )
        return client


@dataclass(slots=True)
class _Call:
    """What is known of one exchange: whether it opened a connection of its own, and whether an answer began."""

    url: str
    deadline_seconds: float
    byte_cap: int
    connected: bool = False
    reply_began: bool = False

    async def trace(self, event: str, _details: Mapping[str, object]) -> None:
        """Called by httpcore at each step."""
        if event.startswith("connection.connect_tcp"):
            self.connected = True


async def _read(chunks: AsyncIterator[bytes], call: _Call) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > call.byte_cap:
            raise _too_long(call)
    return bytes(body)


def _decoded(raw: bytes, encoding: str, call: _Call) -> bytes:
    """The body, decompressed under the same cap: a small gzip can unpack to gigabytes."""
    if encoding.strip().lower() in {"", "identity"}:
        return raw
    if encoding.strip().lower() not in {"gzip", "x-gzip"}:
        message = f"{call.url} answered in an encoding that was not asked for: try again later"
        raise Malformed(message)
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # 16: a gzip header
    try:
        body = unpacker.decompress(raw, call.byte_cap + 1)
    except zlib.error as exc:
        message = f"{call.url} answered with broken gzip: try again later"
        raise Malformed(message) from exc
    if len(body) > call.byte_cap:
        raise _too_long(call)
    if not unpacker.eof:
        message = f"{call.url} answered with half a gzip: try again later"
        raise Malformed(message)
    return body


def _too_long(call: _Call) -> Malformed:
    return Malformed(f"{call.url} answered with more than {call.byte_cap} bytes: not read further")


def _load(library: Library | None) -> ModuleType:
    for name in (library,) if library else ("httpx2", "httpx"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    message = f"the HTTP client {library or 'httpx2'} is not installed: pip install {library or 'httpx2'}"
    raise ConfigurationFault(message)


def _checked_base(base_url: str) -> str:
    """The base URL without a trailing slash; messages never quote it whole, as it might hold a password."""
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        message = "the base URL of the provider is no URL: expected something like https://host/api/v1"
        raise ConfigurationFault(message) from exc
    if parts.scheme not in {"http", "https"} or not host or not base_url.isprintable() or " " in base_url:
        message = "the base URL of the provider is no URL: expected something like https://host/api/v1"
        raise ConfigurationFault(message)
    if "@" in parts.netloc or parts.query or parts.fragment:
        message = (
            f"the base URL of the provider at {host} must hold neither credentials nor a query: keys go in headers"
        )
        raise ConfigurationFault(message)
    if parts.scheme == "http" and not _loopback(host):
        message = f"the base URL of the provider at {host} is plain http: use https (plain http is for loopback only)"
        raise ConfigurationFault(message)
    return base_url.rstrip("/")


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            message = (
                f"the value for the header {name} holds characters that cannot be sent: look for a "
                "line break in the key"
            )
            raise ConfigurationFault(message)
    return dict(headers)
