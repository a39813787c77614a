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

Basis = Literal["limits", "measured", "guessed"]
_SAID: Final[Mapping[Basis, str]] = {
    "limits": "by the limits a minute",
    "measured": "by a try of a few texts here",
    "guessed": f"if a request takes {bill.REQUEST_SECONDS:g} s; no limit a minute is set",
}


_CENT: Final = 0.01


@dataclass(frozen=True, slots=True)
class Generation:
    """What is planned for one generation, and how long its embedding takes."""

    pin: Pin
    plans: Mapping[str, SourcePlan]
    timed: Callable[[Bill], float]
    basis: Basis

    @property
    def total(self) -> Bill:
        """All that is embedded for it."""
        return self.of(list(self.plans))

    def of(self, sources: Sequence[str]) -> Bill:
        """What is embedded for it of these sources."""
        return sum((self.plans[source].bill for source in sources), Bill())


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
    if is_local(pin.model):
        a_token = await _measured(app, pin, planner.specimens)
        return Generation(pin, plans, lambda cost: cost.tokens * a_token, "measured")
    limits = app.embedders.limits(pin)
    return Generation(
        pin, plans, lambda cost: bill.seconds(cost, limits), "limits" if bill.limited(limits) else "guessed"
    )


async def _measured(app: App, pin: Pin, specimens: Sequence[str]) -> float:
    """Seconds a token by a model of this process, from a few of the texts; the first of them warms it up."""
    if not specimens:
        return 0.0
    client = app.embedders.client(pin)
    await client.embed(specimens[:1])
    began = app.clock.monotonic()
    embedded = await client.embed(specimens)
    return (app.clock.monotonic() - began) / max(1, embedded.usage.tokens)


def _report(app: App, generations: Sequence[Generation], leader: Mapping[str, object] | None) -> Mapping[str, object]:
    active = generations[0]
    total = _row(app, generations, list(active.plans))
    return {
        "sources": {source: _row(app, generations, [source]) for source in active.plans},
        "total": total,
        "seconds": total["seconds"],
        "basis": list(_bases(generations)),
        "pin": {**active.pin.as_row(), "pinned": app.pinned},
        "generations": [
            {"collection": one.pin.collection, "model": one.pin.model, **_cost(app, [(one.pin, one.total)])}
            for one in generations
        ],
        "leader": leader,
        "notes": _notes(app, total, leader),
    }


def _row(app: App, generations: Sequence[Generation], sources: Sequence[str]) -> dict[str, object]:
    """Documents and rows are the active generation's, the cost is everybody's."""
    plans = [generations[0].plans[source] for source in sources]
    bills = [(one.pin, one.of(sources)) for one in generations]
    return {
        "documents": sum(planned.documents for planned in plans),
        **{fate: sum(planned.fates[fate] for planned in plans) for fate in FATES},
        "deadLettered": sum(planned.tried for planned in plans),
        "chunks": sum(planned.chunks for planned in plans),
        "written": sum(planned.rows["written"] for planned in plans),
        "rewritten": sum(planned.rows["rewritten"] for planned in plans),
        "removed": sum(planned.rows["removed"] for planned in plans),
        **_cost(app, bills),
        "seconds": round(sum(one.timed(one.of(sources)) for one in generations), 2),
    }


def _bases(generations: Sequence[Generation]) -> Sequence[Basis]:
    return list(dict.fromkeys(one.basis for one in generations if one.total.tokens))


def _cost(app: App, bills: Sequence[tuple[Pin, Bill]]) -> dict[str, object]:
    prices = [app.settings.price(pin.model, one.tokens) for pin, one in bills if one.tokens]
    known = [price for price in prices if price is not None]
    return {
        "embeddings": sum(one.embeddings for _, one in bills),
        "tokens": sum(one.tokens for _, one in bills),
        "requests": sum(bill.requests(one, app.embedders.limits(pin)) for pin, one in bills),
        "usd": sum(known, 0.0) if len(known) == len(prices) else None,
    }


def _notes(app: App, total: Mapping[str, object], leader: Mapping[str, object] | None) -> list[str]:
    notes: list[str] = []
    if not app.pinned:
        notes.append(f"Nothing is pinned yet: the first start pins {app.pin.model} ({app.pin.dimensions}).")
    if total["usd"] is None:
        notes.append("The price of the model is not known here: set WORKER_USD_PER_MILLION_TOKENS.")
    budget, cost = app.settings.daily_budget_usd, total["usd"]
    if budget is not None and isinstance(cost, float) and cost > budget:
        notes.append(f"WORKER_DAILY_BUDGET_USD is {budget:g}: this takes {-(-cost // budget):.0f} days.")
    if total["deadLettered"]:
        notes.append(f"{total['deadLettered']} documents are dead-lettered, are tried again, and may fail again.")
    if leader is not None:
        notes.append("A worker leads: what is on its way to it is counted here too, and needs no backfill.")
    return notes


_ALWAYS: Final = {name: name for name in ("add", "change", "remove", "keep", "chunks", "tokens")}
_WHERE_ANY: Final = {"hidden": "hidden", "unreadable": "unreadable", "USD": "usd", "time": "seconds"}
"""Headings of the table and where each stands in the report. A column of nothing is left out, and what becomes of chunk
rows is in the JSON alone: a terminal is 80 characters wide."""


def _shown(report: Mapping[str, object], generations: Sequence[Generation]) -> Group:
    sources = cast("Mapping[str, Mapping[str, object]]", report["sources"])
    total = cast("Mapping[str, object]", report["total"])
    columns = {
        **_ALWAYS,
        **{heading: name for heading, name in _WHERE_ANY.items() if total[name] or total[name] is None},
    }
    every = {**sources, "all": total} if len(sources) > 1 else sources
    rows = [
        [source, *(_cell(heading, row[name]) for heading, name in columns.items())] for source, row in every.items()
    ]
    notes = cast("Sequence[str]", report["notes"])
    counted = table("what a backfill would do", ["source", *columns], rows)
    return Group(counted, *(Text(line) for line in (_verdict(report, total, generations), *notes)))


def _cell(heading: str, value: object) -> object:
    if not isinstance(value, int | float) or heading not in {"USD", "time"}:
        return value
    if heading == "time":
        return _length(value)
    return "<0.01" if 0 < value < _CENT else f"{value:.2f}"


def _verdict(report: Mapping[str, object], total: Mapping[str, object], generations: Sequence[Generation]) -> str:
    if not total["tokens"]:
        return "Nothing is to be embedded."
    models = " and ".join(dict.fromkeys(one.pin.model for one in generations if one.total.tokens))
    money = "" if total["usd"] is None else f", ${total['usd']:.6f}" if total["usd"] else ", free"
    bases = " and ".join(_SAID[basis] for basis in _bases(generations))
    time = f", about {_length(cast('float', report['seconds']))} ({bases})"
    return f"{total['tokens']:,} tokens to embed by {models}, in at least {total['requests']:,} requests{money}{time}."


def _length(seconds: float) -> str:
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if hours < 2 else f"{hours:.1f} h"  # noqa: PLR2004
