"""`plan`: what `backfill` would do now, and what it would cost; nothing is written, nothing is sent to a provider."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast

from rich.console import Group
from rich.text import Text

from brain.knowledge.embedding.choose import is_local
from brain.knowledge.pin import Pin
from worker.app import opened
from worker.audit import bill
from worker.audit.plan import FATES, Bill, Planner, SourcePlan
from worker.commands.progress import Spinner
from worker.commands.where import Where, table
from worker.errors import EXIT_OK
from worker.parts import App

Basis = Literal["limits", "measured"]
_SAID: Final[Mapping[Basis, str]] = {"limits": "by the limits a minute", "measured": "by a try of a few texts here"}


@dataclass(frozen=True, slots=True)
class Generation:
    """What is planned for one generation, and how long its embedding takes where anybody can say."""

    pin: Pin
    plans: Mapping[str, SourcePlan]
    seconds: float | None
    basis: Basis

    @property
    def total(self) -> Bill:
        """All that is embedded for it."""
        return sum((planned.bill for planned in self.plans.values()), Bill())


async def plan(where: Where, sources: Sequence[str]) -> int:
    """Plan the sources, all by default; raises KnowledgeError when something is wrong or does not answer."""
    async with opened(embedded=where.embedded, data=where.data, create=False, writes=False) as app:
        chosen = app.chosen(sources)
        billed: set[tuple[str, int, str]] = set()
        with Spinner("planning", shown=where.people) as spinner:
            generations = [await _planned(app, pin, chosen, billed, spinner.told) for pin in app.generations.live]
        report = _report(app, generations, await app.lease.holder())
    where.answer(report, _shown(report, generations))
    return EXIT_OK


async def _planned(
    app: App, pin: Pin, sources: Sequence[str], billed: set[tuple[str, int, str]], progress: Callable[[str, int], None]
) -> Generation:
    planner = Planner(app.comparer(pin), app.store(pin), app.store(), pin, billed)
    plans = {source: await planner.plan(source, progress) for source in sources}
    total = sum((planned.bill for planned in plans.values()), Bill())
    if is_local(pin.model):
        return Generation(pin, plans, await _measured(app, pin, total, planner.specimens), "measured")
    return Generation(pin, plans, bill.seconds(total, app.embedders.limits(pin)), "limits")


async def _measured(app: App, pin: Pin, total: Bill, specimens: Sequence[str]) -> float:
    """How long a model of this process takes, from a few of the texts; the first of them warms it up."""
    if not specimens:
        return 0.0
    client = app.embedders.client(pin)
    await client.embed(specimens[:1])
    began = app.clock.monotonic()
    embedded = await client.embed(specimens)
    return (app.clock.monotonic() - began) * total.tokens / max(1, embedded.usage.tokens)


def _report(app: App, generations: Sequence[Generation], leader: Mapping[str, object] | None) -> Mapping[str, object]:
    active = generations[0]
    timed = [one for one in generations if one.total.tokens]
    known = [one.seconds for one in timed if one.seconds is not None]
    total = _row(app, generations, list(active.plans))
    return {
        "sources": {source: _row(app, generations, [source]) for source in active.plans},
        "total": total,
        "seconds": round(sum(known), 2) if len(known) == len(timed) else None,
        "pin": {**active.pin.as_row(), "pinned": app.pinned},
        "generations": [
            {"collection": one.pin.collection, "model": one.pin.model, **_cost(app, [(one.pin, one.total)])}
            for one in generations
        ],
        "leader": leader,
        "notes": _notes(app, total, [one.pin for one in timed if one.seconds is None], leader),
    }


def _row(app: App, generations: Sequence[Generation], sources: Sequence[str]) -> dict[str, object]:
    """Documents and rows are the active generation's, the cost is everybody's."""
    plans = [generations[0].plans[source] for source in sources]
    bills = [(one.pin, sum((one.plans[source].bill for source in sources), Bill())) for one in generations]
    return {
        "documents": sum(planned.documents for planned in plans),
        **{fate: sum(planned.fates[fate] for planned in plans) for fate in FATES},
        "deadLettered": sum(planned.tried for planned in plans),
        "chunks": sum(planned.chunks for planned in plans),
        "written": sum(planned.rows["written"] for planned in plans),
        "rewritten": sum(planned.rows["rewritten"] for planned in plans),
        "removed": sum(planned.rows["removed"] for planned in plans),
        **_cost(app, bills),
    }


def _cost(app: App, bills: Sequence[tuple[Pin, Bill]]) -> dict[str, object]:
    prices = [app.settings.price(pin.model, one.tokens) for pin, one in bills if one.tokens]
    known = [price for price in prices if price is not None]
    return {
        "embeddings": sum(one.embeddings for _, one in bills),
        "tokens": sum(one.tokens for _, one in bills),
        "requests": sum(bill.requests(one, app.embedders.limits(pin)) for pin, one in bills),
        "usd": sum(known, 0.0) if len(known) == len(prices) else None,
    }


def _notes(
    app: App, total: Mapping[str, object], untimed: Sequence[Pin], leader: Mapping[str, object] | None
) -> list[str]:
    notes: list[str] = []
    if not app.pinned:
        notes.append(f"Nothing is pinned yet: the first start pins {app.pin.model} ({app.pin.dimensions}).")
    if total["usd"] is None:
        notes.append("The price of the model is not known here: set WORKER_USD_PER_MILLION_TOKENS.")
    if untimed:
        notes.append("How long it takes nobody here knows: set WORKER_TOKENS_PER_MINUTE or WORKER_REQUESTS_PER_MINUTE.")
    budget, cost = app.settings.daily_budget_usd, total["usd"]
    if budget is not None and isinstance(cost, float) and cost > budget:
        notes.append(f"WORKER_DAILY_BUDGET_USD is {budget:g}: this takes {-(-cost // budget):.0f} days.")
    if total["deadLettered"]:
        notes.append(f"{total['deadLettered']} documents are dead-lettered, are tried again, and may fail again.")
    if leader is not None:
        notes.append("A worker leads: what is on its way to it is counted here too, and needs no backfill.")
    return notes


_ALWAYS: Final = {"add": "add", "change": "change", "remove": "remove", "keep": "keep"}
_WHERE_ANY: Final = {
    "hidden": "hidden",
    "unreadable": "unreadable",
    "write": "written",
    "rewrite": "rewritten",
    "drop": "removed",
    "embed": "embeddings",
    "tokens": "tokens",
    "USD": "usd",
}
"""Headings of the table, documents first, then chunk rows, then the cost, and where each stands in the report. A column
of nothing is left out: a terminal is 80 characters wide."""


def _shown(report: Mapping[str, object], generations: Sequence[Generation]) -> Group:
    sources = cast("Mapping[str, Mapping[str, object]]", report["sources"])
    total = cast("Mapping[str, object]", report["total"])
    columns = {
        **_ALWAYS,
        **{heading: name for heading, name in _WHERE_ANY.items() if total[name] or total[name] is None},
    }
    every = {**sources, "all": total} if len(sources) > 1 else sources
    rows = [[source, *(_cell(row[name]) for name in columns.values())] for source, row in every.items()]
    notes = cast("Sequence[str]", report["notes"])
    counted = table("what a backfill would do", ["source", *columns], rows)
    return Group(counted, *(Text(line) for line in (_verdict(report, total, generations), *notes)))


def _cell(value: object) -> object:
    return f"{value:.6f}" if isinstance(value, float) else value


def _verdict(report: Mapping[str, object], total: Mapping[str, object], generations: Sequence[Generation]) -> str:
    if not total["tokens"]:
        return "Nothing is to be embedded."
    models = " and ".join(dict.fromkeys(one.pin.model for one in generations if one.total.tokens))
    money = "" if total["usd"] is None else f", ${total['usd']:.6f}" if total["usd"] else ", free"
    bases = " and ".join(dict.fromkeys(_SAID[one.basis] for one in generations if one.total.tokens))
    seconds = cast("float | None", report["seconds"])
    time = "" if seconds is None else f", about {_length(seconds)} ({bases})"
    return f"{total['tokens']:,} tokens to embed by {models}, in at least {total['requests']:,} requests{money}{time}."


def _length(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if hours < 2 else f"{hours:.1f} h"  # noqa: PLR2004
