"""`pin build`: the chunks of another model beside those that are searched, until they are complete and right.

    room? does its model answer? ─▶ the generation begins (one write) ─▶ its index
       ─▶ every document, by the worker that leads, or here ─▶ compared with the documents, mended where it differs
       ─▶ its index is ready

Each step sees what is done already, so the command may be ended and given again; the worker that leads goes on without
it. Nothing of it is seen by a search.
"""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import click

from brain.knowledge.embedding.choose import provider_of
from brain.knowledge.pin import Model, Pin
from brain.knowledge.settings import KnowledgeSettings, load
from brain.knowledge.tokens import model_named
from worker.app import opened
from worker.audit.repair import steps
from worker.commands.backfill import Bars
from worker.commands.leading import hand_over
from worker.commands.pin import differences
from worker.commands.pin_desk import PinDesk, pin_desk
from worker.commands.progress import Spinner
from worker.commands.verify import ROUNDS
from worker.commands.where import Where
from worker.embedding.trial import try_model
from worker.errors import (
    EXIT_DIFFERENCES,
    EXIT_OK,
    ConfigurationFault,
    PinRefused,
    WrongTopology,
)
from worker.generations import new_pin
from worker.model import DocKey, Scan
from worker.mongo.capacity import Capacity, capacity
from worker.parts import App
from worker.pipeline.leader import Leader
from worker.vector_index import IndexState, ensure

POLL: Final = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for; nothing at all goes on with the generation that is being built."""

    model: str | None = None
    dimensions: int | None = None
    provider: str | None = None

    @property
    def empty(self) -> bool:
        """Whether no model was named."""
        return self.model is None and self.dimensions is None and self.provider is None


@dataclass(frozen=True, slots=True)
class Built:
    """What came of it: `differing` chunks could not be mended, `embedded` texts were sent by this process."""

    pin: Pin
    chunks: int
    embedded: int
    differing: int
    index: IndexState
    warnings: Sequence[str]


async def build(where: Where, order: Order) -> int:
    """Build it to its end; 1 when something still differs from the documents, or when it may not be built."""
    model = None if order.empty else model_of(order)
    async with pin_desk(where) as desk:
        pin, warnings = await _begun(desk, where, model)
        for sentence in warnings:
            click.echo(f"warning: {sentence}", err=True)
        async with opened(embedded=where.embedded, data=where.data, create=False) as app:
            await _until_built(where, desk, app, pin)
            differing = await _mended(where, app, pin)
            embedded = app.embedded["embeddings"]
        await desk.still(pin)
        index = await ensure(desk.index, pin, desk.clock)
        chunks = (await desk.standing(pin)).chunks
    return _answer(where, Built(pin, chunks, embedded, differing, index, warnings))


def model_of(order: Order) -> Model:
    """The model that was named; the rules are those of the settings. Raises UsageError in their words."""
    named = {
        "EMBEDDING_PROVIDER": order.provider,
        "EMBEDDING_MODEL": order.model,
        "EMBEDDING_DIMENSIONS": None if order.dimensions is None else str(order.dimensions),
    }
    if order.model is not None and order.provider is None:
        named["EMBEDDING_PROVIDER"] = provider_of(order.model)
    try:
        settings = load(KnowledgeSettings, {name: text for name, text in named.items() if text is not None}, "PIN_")
    except ConfigurationFault as error:
        words = str(error)
        for name, option in _OPTIONS.items():
            words = words.replace(name, option)
        raise click.UsageError(words) from error
    return model_named(settings.embedding_model, settings.embedding_dimensions)


async def _begun(desk: PinDesk, where: Where, model: Model | None) -> tuple[Pin, Sequence[str]]:
    """The generation that is being built, begun now if need be, and what to warn of. Raises PinRefused."""
    generations = await desk.pins.load()
    beside = generations.beside if generations.role == "next" else None
    if model is None:
        if beside is None:
            message = "no generation is being built: name its model (--model M)"
            raise click.UsageError(message)
        return beside, ()
    if beside is not None and (beside.model, beside.dimensions) == (model.name, model.dimensions):
        return beside, ()
    room = await _room(desk, where, generations.active, model)
    if room.short is not None:
        raise PinRefused(room.short)
    pin = new_pin(model, desk.clock.now())
    await try_model(desk.embedders.client(pin))
    await desk.do("build", pin)
    await begin_index(desk, pin)
    return pin, room.warnings


async def _room(desk: PinDesk, where: Where, active: Pin, model: Model) -> Capacity:
    """As the server tells it; of an embedded one, the disk of its folder."""
    room = await capacity(desk.database, active, model)
    return replace(room, free=shutil.disk_usage(where.data).free) if where.embedded else room


async def begin_index(desk: PinDesk, pin: Pin) -> None:
    """Have the server begin with the index before anything is paid for; one that it refuses ends the generation."""
    state = await desk.index.look(pin)
    if not state.supported or state.exists:
        return
    try:
        await desk.index.create(pin)
    except WrongTopology as error:  # code 20, which is also how Atlas says that a tier has no room for another index
        await desk.do("drop", pin)
        message = (
            "the server refuses another search index (a free cluster may have 3, a Flex cluster 10): remove one, or "
            "choose a larger tier; the generation was taken back"
        )
        raise PinRefused(message) from error


async def _until_built(where: Where, desk: PinDesk, app: App, pin: Pin) -> None:
    """Wait for the worker that leads, or do it here when nobody does. Raises GenerationsChanged."""
    with Bars(shown=where.people) as bars:
        for source in desk.settings.sources:
            bars.expect(source, await desk.database.estimate(source))
        while True:
            standing = await desk.standing(pin)
            for source, progress in standing.progress.items():
                bars.moved(Scan(source, "generation", "", done=progress.done, seen=progress.seen))
            if standing.built:
                return
            await desk.still(pin)
            leadership = await app.lease.acquire()
            if leadership is not None:
                try:
                    await app.leader(leadership, bars.moved).backfill(app.settings.sources, None)
                finally:
                    await app.release(leadership)
            await asyncio.sleep(POLL)


async def _mended(where: Where, app: App, pin: Pin) -> int:
    """Compare the generation with the documents and mend it; how many chunks differ in the end.

    That its vectors are the model's is looked at before a switch.
    """
    with Spinner("comparing", shown=where.people) as spinner:
        suspects = await differences(app, pin, spinner, 0)
        for _ in range(ROUNDS):
            if not suspects:
                break
            for keys, rows in steps(suspects):
                await _mend(app, pin, keys, rows)
            suspects = await differences(app, pin, spinner, 0)
    return sum(suspects.count().values())


async def _mend(app: App, pin: Pin, keys: Sequence[DocKey], rows: Sequence[object]) -> None:
    async def lead(leader: Leader) -> None:
        await leader.look(keys, "repair", discard=rows, pin=pin)

    wanted = [{"source": key.source, "id": key.raw} for key in keys]
    await hand_over(app, "look", {"keys": wanted, "discard": rows, "pin": pin.as_row()}, lead)


def _answer(where: Where, built: Built) -> int:
    ok = not built.differing
    report = {
        "ok": ok,
        **built.pin.as_row(),
        "chunks": built.chunks,
        "embeddings": built.embedded,
        "differing": built.differing,
        "indexState": built.index.words,
        "warnings": list(built.warnings),
    }
    name = f"{built.pin.model} ({built.pin.dimensions}) in {built.pin.collection}"
    done = f"{name} is built: {built.chunks:,} chunks, kept fresh from now on. `pin switch` makes it the searched one."
    where.answer(report, done if ok else f"{name}: {built.differing} chunks differ from the documents (`verify`).")
    return EXIT_OK if ok else EXIT_DIFFERENCES


_OPTIONS: Final = {
    "EMBEDDING_PROVIDER": "--provider",
    "EMBEDDING_MODEL": "--model",
    "EMBEDDING_DIMENSIONS": "--dimensions",
}
