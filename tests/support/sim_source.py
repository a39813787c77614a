"""The simulated kind of document: tiny, and with everything that a real kind may have.

A document is `{_id, name, body: [str], links: [int], hidden, ends, title, views, poison}`. Each entry of `body` is a
part; a last part names the linked documents that are there and not hidden. `views` is noise, `title` metadata, and
`poison` makes its text impossible to embed ("text"), or the document impossible to shape ("shape") or read ("bytes").
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

import numpy as np

from brain.knowledge.chunk import Metadata, Vector, text_hash
from brain.knowledge.embedding import Embedded, Purpose, Usage
from brain.knowledge.pin import Model, Pin
from tests.support.sim_weather import Weather
from worker.errors import Malformed, Poison, Throttled, Unavailable, Unreachable, UnreadableDocument
from worker.model import DocKey, Document, Part, Shaped
from worker.pipeline.diff import Target
from worker.sources.source import Setting

MODEL: Final = Model("sim/model", 4, 512)
PIN: Final = Pin(MODEL.name, MODEL.dimensions)
OTHERS: Final = (Model("sim/other", 4, 512), Model("sim/wide", 6, 512), MODEL)
"""Models for another generation: of the same width, of another one, and the same model again."""

POISON: Final = "poison"


def visible(document: Document, now: datetime) -> bool:
    """Whether the document may be found now."""
    ends = cast("datetime | None", document.get("ends"))
    return not document.get("hidden") and (ends is None or ends > now)


@dataclass(frozen=True, slots=True)
class SimSource:
    """Implements worker.sources.source.Source."""

    collection: str
    chunker_version: int = 1

    def neighbours(self, document: Document) -> Sequence[DocKey]:
        """The linked documents."""
        return [DocKey.of(self.collection, link) for link in cast("list[int]", document["links"])]

    def shape(self, document: Document, setting: Setting) -> Shaped:
        """What the document says now."""
        if document.get("poison") == "shape":
            message = "nobody knows this shape"
            raise UnreadableDocument(message)
        if not visible(document, setting.now):
            return Shaped(face=_face(document))  # of one that has ended, others still tell
        name = cast("str", document["name"])
        metadata = Metadata("trick", cast("str", document["title"]))
        poison = f" {POISON} {document['_id']}" if document.get("poison") == "text" else ""
        texts = [f"{name}: {text}{poison}" for text in cast("list[str]", document["body"])]
        refs = tuple(self.neighbours(document))
        faces = {ref: _face(setting.neighbours.get(ref)) for ref in refs}
        names = [face for ref in refs if (face := faces[ref]) is not None]
        parts = [Part(f"body-{at}", text, metadata) for at, text in enumerate(texts)]
        if names:
            parts.append(Part("links", f"{name} leads to {', '.join(names)}", metadata))
        ends = cast("datetime | None", document.get("ends"))
        return Shaped(tuple(parts), refs, _face(document), ends, faces=faces)


def _face(document: Document | None) -> str | None:
    """What others say of this one; time does not hide it from them."""
    shown = document is not None and not document.get("hidden") and readable(document)
    return cast("str", document["name"]) if document is not None and shown else None


def readable(document: Document) -> bool:
    """Whether its bytes are whole."""
    return document.get("poison") != "bytes"


class WordCounter:
    """A tokenizer of words."""

    window = MODEL.window

    def count(self, text: str) -> int:
        """Words."""
        return len(text.split())


def vector_of(text: str, model: Model = MODEL) -> Vector:
    """The one right vector of a text under a model."""
    digest = text_hash(text if model == MODEL else f"{model.name}: {text}")
    return np.frombuffer(bytes.fromhex(digest), dtype=np.uint8)[: model.dimensions].astype(np.float32)


class SimClient:
    """Implements EmbeddingClient: fails as the weather will, and remembers what it embedded."""

    def __init__(self, weather: Weather, model: Model = MODEL) -> None:
        self.model = model
        self._weather = weather
        self.sent: list[str] = []
        self.seconds = 0.0
        """How long an answer takes, beside what the weather costs."""

    async def embed(self, texts: Sequence[str], purpose: Purpose = "document") -> Embedded:
        """Vectors, or a fault."""
        await self._weather.wait()
        await asyncio.sleep(self.seconds)
        fail = self._weather.strikes(self._weather.rates.embed)
        if fail and self._weather.rng.random() < 0.8:
            raise self._fault()
        if any(POISON in text for text in texts):
            message = "one of these can never work"
            raise Poison(message)
        self.sent += texts
        await self._weather.wait()
        if fail:
            message = "embedded, paid, and the answer was lost"
            raise Unreachable(message)
        return Embedded(tuple(vector_of(text, self.model) for text in texts), Usage(len(texts)))

    async def close(self) -> None:
        """Nothing to give back."""

    def _fault(self) -> Exception:
        message = "not now"
        return self._weather.rng.choice(
            (Throttled(message, retry_after=2.0), Unavailable(message), Malformed(message), Unreachable(message))
        )


def model_of(pin: Pin) -> Model:
    """The model of a pin."""
    return Model(pin.model, pin.dimensions, MODEL.window)


def target_of(pin: Pin, sources: Mapping[str, SimSource]) -> Target:
    """What the chunks of a generation are made for."""
    return Target(pin, WordCounter(), {name: source.chunker_version for name, source in sources.items()})


def expected(
    documents: Mapping[DocKey, Document], key: DocKey, source: SimSource, now: datetime
) -> Shaped | UnreadableDocument:
    """What the document says, computed from scratch."""
    setting = Setting(now, WordCounter(), 512, documents)
    try:
        if key in documents and not readable(documents[key]):
            return UnreadableDocument("damaged")
        return source.shape(documents[key], setting) if key in documents else Shaped()
    except UnreadableDocument as error:
        return error
