"""The people who write: every kind of change that a source can see, one after another."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Final, cast

from tests.support.sim_database import Database
from tests.support.virtual import VirtualClock
from worker.model import DocKey, Document, DocumentChanged, Request, SourceArrived, SourceGone

IDS: Final = 6  # documents a source at most
WORDS: Final = ("ollie", "kickflip", "heelflip", "shuvit", "grind", "slide", "carve", "manual")


class Writer:
    """Changes documents, and leaves the events that a database would."""

    def __init__(self, database: Database, rng: Random) -> None:
        self._db = database
        self._rng = rng
        self._clock = VirtualClock()
        self._next: list[Callable[[], None]] = []
        # Not every act in every seed: scans (drop, rename in, a request) mend what a lost event would leave behind.
        rare = {self.drop: 1, self.rename_in: 1, self.ask: 1}
        weights = {self.put: 3, self.edit: 8, self.remove: 2, self.swing: 4} | rare
        chosen = [act for act in weights if rng.random() < 0.5] or [self.edit]
        self._acts: list[Callable[[str], None]] = [act for act in chosen for _ in range(weights[act])]

    async def write(self, until: float, pause: float) -> None:
        """Write now and then until that time."""
        while self._clock.monotonic() < until:
            if self._next and self._rng.random() < 0.7:
                self._next.pop(0)()
            else:
                self._rng.choice(self._acts)(self._rng.choice(list(self._db.documents)))
            await asyncio.sleep(self._rng.random() * pause)

    def fill(self) -> None:
        """What was there before anybody watched."""
        for source, documents in self._db.documents.items():
            for number in range(self._rng.randint(0, IDS)):
                documents[DocKey.of(source, number)] = self._document(number)

    def put(self, source: str) -> None:
        """Insert or replace a document."""
        key = DocKey.of(source, self._rng.randrange(IDS))
        self._set(key, self._document(cast("int", key.raw)))

    def edit(self, source: str) -> None:
        """Change one field, or several."""
        if not (documents := self._db.documents[source]):
            return
        key = self._rng.choice(list(documents))
        fresh = self._document(cast("int", key.raw))
        fields = self._rng.choices(("name", "body", "links", "hidden", "ends", "title", "views", "poison"), k=2)
        self._set(key, {**documents[key], **{field: fresh[field] for field in fields}})

    def swing(self, source: str) -> None:
        """Rename a document, change others that name it, and rename it back: soon, one by one, after other acts."""
        shown = [key for key in self._db.documents[source] if not self._db.documents[source][key]["hidden"]]
        if not shown:
            return
        key = self._rng.choice(shown)
        name = self._db.documents[source][key]["name"]
        fresh = next(word for word in WORDS if word != name)

        def rename(to: object) -> None:
            if key in self._db.documents[source]:
                self._set(key, {**self._db.documents[source][key], "name": to})

        def show() -> None:
            for other, document in list(self._db.documents[source].items()):
                if other != key:
                    links = [cast("int", key.raw), *cast("list[int]", document["links"])]
                    self._set(other, {**document, "links": links[:2], "views": self._rng.random()})

        rename(fresh)
        self._next += [show, lambda: rename(name)]

    def remove(self, source: str) -> None:
        """Delete a document."""
        if documents := self._db.documents[source]:
            key = self._rng.choice(list(documents))
            del documents[key]
            self._db.record(DocumentChanged(key, self._clock.now()))

    def drop(self, source: str) -> None:
        """Drop the collection: one event for all of it, now and then."""
        if self._rng.random() < 0.2:
            self._db.documents[source].clear()
            self._db.record(SourceGone((source,), "drop"))

    def rename_in(self, source: str) -> None:
        """Put another collection in its place: one event, and other documents."""
        if self._rng.random() < 0.2:
            numbers = self._rng.sample(range(IDS), self._rng.randint(0, IDS))
            self._db.documents[source] = {DocKey.of(source, number): self._document(number) for number in numbers}
            self._db.record(SourceArrived(source))

    def ask(self, source: str) -> None:
        """Leave a request, not always a sensible one."""
        number = str(len(self._db.requests))
        strange = self._rng.choice((source, source, "nobody"))
        self._db.requests[number] = self._rng.choice(
            (
                Request(number, "backfill", {"sources": [strange]}),
                Request(number, "look", {"keys": [{"source": strange, "id": self._rng.randrange(IDS)}]}),
            )
        )

    def _set(self, key: DocKey, document: Document) -> None:
        self._db.documents[key.source][key] = document
        self._db.record(DocumentChanged(key, self._clock.now()))

    def _document(self, number: int) -> Document:
        rng = self._rng
        soon = self._clock.now() + timedelta(seconds=rng.uniform(1, 30))
        return {
            "_id": number,
            "name": rng.choice(WORDS[:4]),
            "body": rng.choices(WORDS, k=rng.choice((0, 1, 1, 2))),
            "links": rng.sample(range(IDS), rng.choice((0, 1, 2))),
            "hidden": rng.random() < 0.2,
            "ends": soon if rng.random() < 0.15 else None,
            "title": rng.choice(WORDS),
            "views": rng.random(),
            "poison": rng.choice(("text", "shape", "bytes")) if rng.random() < 0.06 else None,
        }
