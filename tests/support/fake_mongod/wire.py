"""Frames of MongoDB's wire protocol, as far as drivers need them: OP_MSG both ways, OP_QUERY in and OP_REPLY out."""

import asyncio
import itertools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

import bson
from bson.codec_options import CodecOptions

Row = dict[str, Any]

_HEADER: Final = struct.Struct("<iiii")
_OP_REPLY: Final = 1
_OP_QUERY: Final = 2004
_OP_MSG: Final = 2013
_MORE_TO_COME: Final = 2
_LARGEST: Final = 48_000_000
_OPTIONS: Final = CodecOptions[Row](tz_aware=True)
_decode = cast("Callable[[bytes, CodecOptions[Row]], Row]", bson.decode)  # pyright: ignore[reportUnknownMemberType]
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Message:
    """A command as it came in; `silent` is one that wants no answer."""

    number: int
    command: Row
    legacy: bool = False
    silent: bool = False


async def read(reader: asyncio.StreamReader) -> Message:
    """The next command; raises IncompleteReadError at the end of the connection."""
    length, number, _, operation = _HEADER.unpack(await reader.readexactly(_HEADER.size))
    assert _HEADER.size <= length <= _LARGEST, length
    body = await reader.readexactly(length - _HEADER.size)
    if operation == _OP_QUERY:
        start = body.index(b"\0", 4) + 1 + 8  # flags, the collection's name, two numbers
        size = struct.unpack_from("<i", body, start)[0]
        return Message(number, _decode(body[start : start + size], _OPTIONS), legacy=True)
    assert operation == _OP_MSG, operation
    flags = struct.unpack_from("<I", body)[0]
    return Message(number, _sections(body[4:]), silent=bool(flags & _MORE_TO_COME))


def _sections(body: bytes) -> Row:
    command: Row = {}
    lists: Row = {}
    while body:
        kind, body = body[0], body[1:]
        size = struct.unpack_from("<i", body)[0]
        section, body = body[:size], body[size:]
        if kind == 0:
            command = _decode(section, _OPTIONS)
        else:
            end = section.index(b"\0", 4)
            lists[section[4:end].decode()] = _every(section[end + 1 :])
    return command | lists


def _every(section: bytes) -> list[Row]:
    rows: list[Row] = []
    while section:
        size = struct.unpack_from("<i", section)[0]
        rows.append(_decode(section[:size], _OPTIONS))
        section = section[size:]
    return rows


def answer(message: Message, reply: Mapping[str, Any]) -> bytes:
    """The frame that answers a message."""
    body = bson.encode(reply)
    if message.legacy:
        body = struct.pack("<iqii", 8, 0, 0, 1) + body
        operation = _OP_REPLY
    else:
        body = struct.pack("<IB", 0, 0) + body
        operation = _OP_MSG
    return _HEADER.pack(_HEADER.size + len(body), next(_numbers), message.number, operation) + body
