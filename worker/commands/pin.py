"""`pin status|switch|rollback|drop`: which generation of chunks is searched, and which other one lives beside it."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import click

from brain.knowledge.pin import Pin
from worker.app import opened
from worker.audit.sample import A_FEW, VectorSample
from worker.audit.verify import Suspects, settle
from worker.commands.pin_desk import PinDesk, Standing, pin_desk, reasons_against
from worker.commands.progress import Spinner
from worker.commands.verify import PATIENCE
from worker.commands.where import Where
from worker.errors import EXIT_DIFFERENCES, EXIT_OK
from worker.generations import Generations
from worker.parts import App

REMOVAL: Final = 60.0
"""Seconds that `drop` waits for the leader to drain and remove the collection; it goes on without us."""

POLL: Final = 0.2  # seconds


async def status(where: Where) -> int:
    """Show every generation, how far a build is, and whether a switch is allowed."""
    async with pin_desk(where) as desk:
        generations = await desk.pins.found()
        if generations is None:
            why = ["nothing is pinned yet: the first start of the worker pins a model"]
            where.answer({"generations": [], "leaving": [], "switch": {"allowed": False, "why": why}}, why[0])
            return EXIT_OK
        standings = [await desk.standing(pin) for pin in generations.live]
        why = _no_next(generations) or reasons_against(
            standings[1], await desk.lacking(generations), await desk.unwatched(generations)
        )
    report = _report(generations, standings, why)
    where.answer(report, _shown(generations, standings, why))
    return EXIT_OK


async def switch(where: Where, *, accept_dead_letters: bool, accept_unwatched: bool, sample: int | None = None) -> int:
    """Search the next generation from now on, if it is complete and right; 1 when it is not."""
    async with pin_desk(where) as desk:
        generations = await desk.pins.load()
        pin = generations.beside
        if pin is None or generations.role != "next":
            return _refused(where, "switched", _no_next(generations))
        lacking: Sequence[str] = () if accept_dead_letters else await desk.lacking(generations)
        unwatched: Sequence[str] = () if accept_unwatched else await desk.unwatched(generations)
        if why := reasons_against(await desk.standing(pin), lacking, unwatched):
            return _refused(where, "switched", why)
        async with opened(embedded=where.embedded, data=where.data, create=False) as app:
            with Spinner("comparing", shown=where.people) as spinner:
                suspects = await differences(app, pin, spinner, sample)
        if suspects:
            counted = ", ".join(f"{count} {kind}" for kind, count in suspects.count().items())
            return _refused(where, "switched", [f"it differs from the documents ({counted}): `pin build` mends it"])
        return await _swap(where, desk, "switch", pin)


async def rollback(where: Where) -> int:
    """Search the previous generation again, at once; it was kept fresh."""
    async with pin_desk(where) as desk:
        generations = await desk.pins.load()
        if generations.beside is None or generations.role != "previous":
            return _refused(where, "rolledBack", ["there is no previous generation to roll back to"])
        return await _swap(where, desk, "rollback", generations.beside)


async def drop(where: Where, name: str | None, *, yes: bool) -> int:
    """Remove the generation that is not searched, its chunks and its index, for good."""
    async with pin_desk(where) as desk:
        generations = await desk.pins.load()
        pin = _named(generations, name)
        if name is not None and pin == generations.active:
            return _refused(where, "dropped", ["that is the active generation, which is searched"])
        if pin is None:
            return _refused(where, "dropped", ["there is no such generation beside the active one (`pin status`)"])
        _confirm(pin, yes=yes, asks=where.people)
        await desk.do("drop", pin)
        gone = await _until_removed(desk, pin)
    after = "" if gone else "; its collection is removed as soon as the worker has drained"
    report = {"dropped": True, "removed": gone, **pin.as_row()}
    where.answer(report, f"{pin.model} ({pin.dimensions}) in {pin.collection} is dropped{after}.")
    return EXIT_OK


async def differences(app: App, pin: Pin, spinner: Spinner, wanted: int | None = None) -> Suspects:
    """What of a generation differs from the documents; beside a running worker, what still does after a while.

    So many stored vectors are embedded again (None: a few), to see that they are the model's.
    """
    sources, auditor = app.settings.sources, app.auditor(pin)
    client = app.embedders.client(pin)
    sample = VectorSample(A_FEW if wanted is None else wanted, app.around.rng)
    suspects = await auditor.audit(sources, spinner.told, sample)
    if await app.lease.holder() is not None:
        suspects = await settle(auditor, suspects, sources, app.clock, PATIENCE)
    return suspects.with_foreign(await sample.foreign(client))


async def _swap(where: Where, desk: PinDesk, act: Literal["switch", "rollback"], pin: Pin) -> int:
    before = (await desk.pins.load()).active
    after = await desk.do(act, pin)
    done = "switched" if act == "switch" else "rolledBack"
    index = await desk.index.look(pin)
    report: Mapping[str, object] = {
        done: after.active == pin,
        "active": after.active.as_row(),
        "previous": before.as_row(),
        "index": index.words,
    }
    other = "`pin rollback` goes back, `pin drop` removes it" if act == "switch" else "`pin switch` tries again"
    where.answer(
        report,
        f"{pin.model} ({pin.dimensions}) in {pin.collection} is searched now. {before.model} ({before.dimensions}) in "
        f"{before.collection} is kept fresh: {other}.",
    )
    return EXIT_OK


def _refused(where: Where, act: str, why: Sequence[str]) -> int:
    where.answer({act: False, "why": list(why)}, "\n".join(f"refused: {reason}" for reason in why))
    return EXIT_DIFFERENCES


def _named(generations: Generations, name: str | None) -> Pin | None:
    """The generation that is meant: by its collection or its model; the one that is not searched for none."""
    if name is None:
        return generations.beside
    beside_first = reversed(generations.live)
    return next((pin for pin in beside_first if name in {pin.collection, pin.model}), None)


def _confirm(pin: Pin, *, yes: bool, asks: bool) -> None:
    if yes:
        return
    if not (asks and sys.stdin.isatty()):
        message = f"this removes {pin.collection} for good: say --yes"
        raise click.UsageError(message)
    click.confirm(f"Remove {pin.model} ({pin.dimensions}) in {pin.collection} for good?", abort=True, err=True)


async def _until_removed(desk: PinDesk, pin: Pin) -> bool:
    deadline = desk.clock.monotonic() + REMOVAL
    while pin.collection in (await desk.pins.load()).leaving:
        if desk.clock.monotonic() >= deadline:
            return False
        await asyncio.sleep(POLL)
    return True


def _no_next(generations: Generations) -> list[str]:
    if generations.beside is None or generations.role != "next":
        return ["there is no next generation: `pin build --model M` makes one"]
    return []


def _role(generations: Generations, standing: Standing) -> str:
    if standing.pin == generations.active:
        return "active"
    if generations.role == "previous":
        return "previous"
    return "next" if standing.built else "building"


def _report(generations: Generations, standings: Sequence[Standing], why: Sequence[str]) -> dict[str, object]:
    rows = {_role(generations, standing): _row(standing) for standing in standings}
    return {
        "generations": [{"role": role, **row} for role, row in rows.items()],
        "leaving": list(generations.leaving),
        "switch": {"allowed": not why, "why": list(why)},
        "rollback": {"allowed": generations.role == "previous"},
    }


def _row(standing: Standing) -> dict[str, object]:
    return {
        **standing.pin.as_row(),
        "chunks": standing.chunks,
        "built": standing.built,
        "progress": {
            name: {"seen": source.seen, "documents": source.documents, "done": source.done}
            for name, source in standing.progress.items()
        },
        "indexReady": standing.index.ready,
        "indexState": standing.index.words,
    }


def _shown(generations: Generations, standings: Sequence[Standing], why: Sequence[str]) -> str:
    lines: list[str] = []
    for one in standings:
        lines.append(f"{_role(generations, one):<10}{one.pin.model} ({one.pin.dimensions}) in {one.pin.collection}")
        lines.append(f"{'':<10}{one.chunks:,} chunks, built: {_far(one)}, index: {one.index.words}")
    lines += [f"{'leaving':<10}{name}, removed as soon as the worker has drained" for name in generations.leaving]
    verdict = "allowed, when it verifies clean (`pin switch`)" if not why else "not allowed"
    return "\n".join([*lines, f"{'switch':<10}{verdict}", *(f"{'':<10}{reason}" for reason in why)])


def _far(standing: Standing) -> str:
    if standing.built:
        return "all"
    sources = standing.progress.values()
    done = sum(source.documents if source.done else min(source.seen, source.documents) for source in sources)
    return f"{done:,} of {sum(source.documents for source in sources):,} documents"
