"""What the status server answers, page by page; no sockets here."""

import html
import json
import math
from dataclasses import dataclass
from typing import Final

from worker.observe.health import HealthBoard, Heartbeat, Readiness
from worker.observe.metrics import CONTENT_TYPE, OTHER, OUTCOMES, PrometheusMeter, in_flight

SILENCE_SECONDS: Final = 60.0  # an event loop that has not run for so long counts as dead
_OK: Final = 200
_NOT_FOUND: Final = 404
_UNAVAILABLE: Final = 503
_TEXT: Final = "text/plain; charset=utf-8"
_COLUMNS: Final = ("received", *OUTCOMES)


@dataclass(frozen=True, slots=True)
class Page:
    """A whole answer."""

    status: int
    content_type: str
    body: bytes


class StatusPages:
    """`/metrics`, `/healthz`, `/readyz` and `/` from the meter, the health board and the event loop's pulse."""

    def __init__(self, meter: PrometheusMeter, board: HealthBoard, heartbeat: Heartbeat) -> None:
        self._meter = meter
        self._board = board
        self._heartbeat = heartbeat

    def answer(self, path: str) -> Page:
        """The page at a path (without query)."""
        match path:
            case "/metrics":
                return Page(_OK, CONTENT_TYPE, self._meter.render())
            case "/healthz":
                return self._alive()
            case "/readyz":
                return self._ready()
            case "/":
                return Page(_OK, "text/html; charset=utf-8", self._people().encode())
            case _:
                return Page(_NOT_FOUND, _TEXT, b"not here; there are /, /metrics, /healthz and /readyz\n")

    def _alive(self) -> Page:
        silence = self._heartbeat.silence()
        if silence < SILENCE_SECONDS:
            return Page(_OK, _TEXT, b"alive\n")
        return Page(_UNAVAILABLE, _TEXT, f"the event loop has not run for {silence:.0f} s\n".encode())

    def _ready(self) -> Page:
        readiness = self._board.snapshot()
        body = json.dumps(readiness.as_row()).encode() + b"\n"
        return Page(_OK if readiness.ready else _UNAVAILABLE, "application/json", body)

    def _people(self) -> str:
        readiness = self._board.snapshot()
        age = self._board.watermark_age()
        state = "ready" if readiness.ready else "not ready"
        return _PAGE.format(
            state=state,
            mark="ok" if readiness.ready else "bad",
            role=html.escape(readiness.role),
            age="unknown (not the leader)" if math.isnan(age) else f"{age:.1f} s",
            reasons=_reasons(readiness),
            head="".join(f"<th>{html.escape(name.replace('_', ' '))}" for name in (*_COLUMNS, "in flight", "last lag")),
            rows=self._rows(),
        )

    def _rows(self) -> str:
        rows: list[str] = []
        for source, counts in self._meter.counts().items():
            if source == OTHER and not any(counts.values()):
                continue
            lag = self._meter.last_lag.get(source)
            cells = [*(str(counts[name]) for name in _COLUMNS), str(in_flight(counts))]
            cells.append("" if lag is None else f"{lag:.2f} s")
            rows.append(f"<tr><th>{html.escape(source)}" + "".join(f"<td>{cell}" for cell in cells))
        return "\n".join(rows)


def _reasons(readiness: Readiness) -> str:
    return "".join(f"<li>{html.escape(reason)}" for reason in readiness.reasons)


_PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<title>trickbook-worker: {state}</title>
<style>
:root {{ color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }}
body {{ max-width: 62rem; margin: 2rem auto; padding: 0 1rem }}
.ok {{ color: #1a7f37 }} .bad {{ color: #cf222e }}
table {{ border-collapse: collapse }} th, td {{ padding: .2rem .8rem .2rem 0; text-align: right }}
th:first-child {{ text-align: left }} td {{ font-variant-numeric: tabular-nums }}
</style>
<h1>trickbook-worker <span class="{mark}">{state}</span></h1>
<p>Role: <b>{role}</b>. Chunks are behind the database by <b>{age}</b> at most.</p>
<ul class="bad">{reasons}</ul>
<table><tr><th>changes{head}
{rows}
</table>
<h2>What to try</h2>
<ul>
<li>Edit a document in a watched collection: within about a second its row counts one more <i>applied</i>.
<li><code>trickbook-brain search "kickflip"</code> answers from what is stored now.
<li><code>trickbook-worker verify</code> compares every stored chunk with its document.
<li><code>trickbook-worker dead-letters list</code> shows what could not be processed, and why.
<li>For machines: <a href="/metrics">/metrics</a>, <a href="/readyz">/readyz</a>, <a href="/healthz">/healthz</a>.
</ul>
"""
