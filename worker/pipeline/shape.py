"""Read and shape: what each document says now, as of one operation time.

The read decides, never the event: a document that is not there is a deletion, one that is hidden says nothing.
"""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeVar

import bson
from bson import Timestamp

from brain.knowledge.log import log, stack_of
from brain.knowledge.pin import Pin
from brain.knowledge.tokens import TokenCounter
from worker.clock import Clock
from worker.errors import UnreadableDocument
from worker.model import DocKey, Document, Reading, Shaped
from worker.ports import Documents
from worker.sources.source import Setting, Source

T = TypeVar("T")

_DAMAGED: Final = "the document cannot be read: its BSON is damaged, or it is larger than the server can send"
_LOGGER: Final = logging.getLogger(__name__)


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
        named = {key: _said(source, partial(source.neighbours, found)) for key, found in reading.documents.items()}
        neighbours = await self._read_neighbours(named.values(), reading.at)
        unfit = {key: UnreadableDocument(_DAMAGED) for key in reading.unreadable} | {
            key: keys for key, keys in named.items() if isinstance(keys, UnreadableDocument)
        }
        now = self._clock.now()

        def shape(key: DocKey, tokens: TokenCounter) -> Shaped | UnreadableDocument:
            if (error := unfit.get(key)) is not None:
                return error
            if (document := reading.documents.get(key)) is None:
                return Shaped()
            setting = Setting(now=now, tokens=tokens, limit=chunk_limit(tokens), neighbours=neighbours)
            return _said(source, partial(source.shape, document, setting))

        def look(key: DocKey) -> Looked:
            shaped = shape(key, self._tokens)
            beside = {
                # models with the same tokenizer share what was shaped
                pin: shaped if tokens == self._tokens else shape(key, tokens)
                for pin, tokens in self._beside.items()
            }
            return Looked(key, reading.at, shaped, _digest(key, reading, shaped), beside)

        return await self._offload(lambda: [look(key) for key in keys])

    async def _read_neighbours(
        self, named: Iterable[Sequence[DocKey] | UnreadableDocument], at: Timestamp
    ) -> Mapping[DocKey, Document]:
        wanted: dict[str, dict[DocKey, None]] = defaultdict(dict)
        for keys in named:
            for key in keys if not isinstance(keys, UnreadableDocument) else ():
                wanted[key.source][key] = None
        found: dict[DocKey, Document] = {}
        for name, keys in wanted.items():
            found.update((await self._documents.read(name, list(keys), at)).documents)
        return found


def chunk_limit(tokens: TokenCounter) -> int:
    """The most tokens of a chunk: 512, or the model's whole window where that is smaller."""
    return min(512, tokens.window)


def _digest(key: DocKey, reading: Reading, shaped: Shaped | UnreadableDocument) -> str:
    """That of a document that cannot be shaped; empty for any other."""
    document = reading.documents.get(key)
    if document is None or isinstance(shaped, Shaped):
        return reading.unreadable.get(key, "")
    return hashlib.sha256(bson.encode(document)).hexdigest()


def _said(source: Source, ask: Callable[[], T]) -> T | UnreadableDocument:
    """What the source says of a document, or why that is its dead letter."""
    try:
        return ask()
    except UnreadableDocument as error:
        return error
    except Exception as bug:  # noqa: BLE001 - a bug that one document finds must not stop all others, at every start
        message = f"{type(bug).__name__} while it was shaped: a bug in the source {source.collection}"
        log(_LOGGER, logging.ERROR, "shape_bug", message, source=source.collection, stack=stack_of(bug))
        return UnreadableDocument(message)
