"""Read and shape: what each document says now, as of one operation time.

The read decides, never the event: a document that is not there is a deletion, one that is hidden says nothing.
"""

import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import bson
from bson import Timestamp

from brain.knowledge.pin import Pin
from brain.knowledge.tokens import TokenCounter
from worker.clock import Clock
from worker.errors import UnreadableDocument
from worker.model import DocKey, Document, Reading, Shaped
from worker.ports import Documents
from worker.sources.source import Setting, Source

T = TypeVar("T")


class Offload(Protocol):
    """Runs pure work beside the event loop; a simulation runs it in place."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """The result of the work."""
        ...


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found when a document was looked at.

    `shaped` is an error when it cannot be shaped, and `digest` then is the SHA-256 of the document, in hex. `beside`
    says the same of each other generation: its model may want shorter parts.
    """

    key: DocKey
    version: Timestamp
    shaped: Shaped | UnreadableDocument
    digest: str = ""
    beside: Mapping[Pin, Shaped | UnreadableDocument] = field(default_factory=dict[Pin, Shaped | UnreadableDocument])


class Shaper:
    """Reads documents with the neighbours that their texts name, and shapes them.

    They are read once, and shaped for the active generation's tokenizer and for each of the others, `beside`.
    """

    def __init__(
        self,
        documents: Documents,
        sources: Mapping[str, Source],
        tokens: TokenCounter,
        clock: Clock,
        offload: Offload,
        beside: Mapping[Pin, TokenCounter] | None = None,
    ) -> None:
        self._documents = documents
        self._sources = sources
        self._tokens = tokens
        self._clock = clock
        self._offload = offload
        self._beside = beside or {}

    async def look(self, wanted: Mapping[DocKey, Timestamp | None]) -> Sequence[Looked]:
        """Look at documents, each at least as new as the time beside it.

        Raises Retryable when the database does not answer: a failed read decides nothing.
        """
        by_source: dict[str, list[DocKey]] = defaultdict(list)
        for key in wanted:
            by_source[key.source].append(key)
        looked: list[Looked] = []
        for name, keys in by_source.items():
            after = max((at for key in keys if (at := wanted[key]) is not None), default=None)
            reading = await self._documents.read(name, keys, after)
            looked += await self._shape(self._sources[name], keys, reading)
        return looked

    async def _shape(self, source: Source, keys: Sequence[DocKey], reading: Reading) -> Sequence[Looked]:
        neighbours = await self._neighbours(source, reading)
        now = self._clock.now()

        def setting(tokens: TokenCounter) -> Setting:
            return Setting(now=now, tokens=tokens, limit=chunk_limit(tokens), neighbours=neighbours)

        def shape_all() -> list[Looked]:
            looked = [_looked(key, reading, source, setting(self._tokens)) for key in keys]
            for pin, tokens in self._beside.items():
                looked = [_with(found, pin, self._again(found, reading, source, setting(tokens))) for found in looked]
            return looked

        return await self._offload(shape_all)

    def _again(self, found: Looked, reading: Reading, source: Source, setting: Setting) -> Shaped | UnreadableDocument:
        """The same document for another tokenizer; models with the same one share what was shaped."""
        if setting.tokens == self._tokens or found.key in reading.unreadable:
            return found.shaped
        return _shaped(source, reading.documents.get(found.key), setting)

    async def _neighbours(self, source: Source, reading: Reading) -> Mapping[DocKey, Document]:
        wanted: dict[str, dict[DocKey, None]] = defaultdict(dict)
        for document in reading.documents.values():
            for key in _neighbours(source, document):
                wanted[key.source][key] = None
        found: dict[DocKey, Document] = {}
        for name, keys in wanted.items():
            found.update((await self._documents.read(name, list(keys), reading.at)).documents)
        return found


def chunk_limit(tokens: TokenCounter) -> int:
    """The most tokens of a chunk: 512 (the design notes), or the model's whole window where that is smaller."""
    return min(512, tokens.window)


def _neighbours(source: Source, document: Document) -> Sequence[DocKey]:
    try:
        return source.neighbours(document)
    except Exception:  # noqa: BLE001 - as below; `shape` will tell
        return ()


def _looked(key: DocKey, reading: Reading, source: Source, setting: Setting) -> Looked:
    if (digest := reading.unreadable.get(key)) is not None:
        message = "the document cannot be read: its BSON is damaged, or it is larger than the server can send"
        return Looked(key, reading.at, UnreadableDocument(message), digest)
    document = reading.documents.get(key)
    shaped = _shaped(source, document, setting)
    if document is None or isinstance(shaped, Shaped):
        return Looked(key, reading.at, shaped)
    return Looked(key, reading.at, shaped, hashlib.sha256(bson.encode(document)).hexdigest())


def _with(found: Looked, pin: Pin, shaped: Shaped | UnreadableDocument) -> Looked:
    return replace(found, beside={**found.beside, pin: shaped})


def _shaped(source: Source, document: Document | None, setting: Setting) -> Shaped | UnreadableDocument:
    if document is None:
        return Shaped()
    try:
        return source.shape(document, setting)
    except UnreadableDocument as error:
        return error
    except Exception as bug:  # noqa: BLE001 - a bug that one document finds must not stop all others, at every start
        return UnreadableDocument(f"{type(bug).__name__} while it was shaped: a bug in the source {source.collection}")
