"""The figures for Prometheus, under names that alerts and dashboards use: they stay as they are.

Label sets are closed: source names come from the configuration, outcomes and actions from the types, and every other
word (a reason, a step, an oddity) is a constant of our code; a word beyond `MOST_WORDS` or of another shape counts as
`other`, so that no document can ever make a series.

Conservation shows in every scrape: `events_total{outcome="received"}` = the sum of the other outcomes + `in_flight`,
because one lock covers the counts and the scrape.
"""

import math
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from worker.model import Outcome

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
OTHER: Final = "other"
MOST_WORDS: Final = 48  # distinct words of one label
LAG_BUCKETS: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300, 1800, 14400, 86400)  # seconds
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"  # our names need no escaping: every scraper reads it

GaugeName = Literal[
    "watermark_age_seconds",
    "history_headroom_seconds",
    "dead_letters",
    "leader",
    "ready",
    "embedding_budget_remaining_usd",
]
_GAUGES: Final[Mapping[GaugeName, str]] = {
    "watermark_age_seconds": "How long the oldest change without outcome has waited; near 0 when idle and alive",
    "history_headroom_seconds": "How far the stored position is from the oldest entry of the history; NaN: unknown",
    "dead_letters": "Documents that could not be processed",
    "leader": "1 when this process holds the lease",
    "ready": "1 when /readyz answers 200",
    "embedding_budget_remaining_usd": "Dollars that may still be spent today (UTC); NaN without a budget",
}
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,47}")


def _nothing() -> float:
    return math.nan


class _Words:
    """The words of one label: a closed set when `known` is given, else the first `MOST_WORDS` well-formed ones."""

    def __init__(self, known: Iterable[str] | None = None) -> None:
        self._open = known is None
        self._words = set(known or ())

    def __call__(self, word: str) -> str:
        """The word, or `other`."""
        if word not in self._words:
            if not (self._open and len(self._words) < MOST_WORDS and _WORD.fullmatch(word)):
                return OTHER
            self._words.add(word)
        return word


class _Events(Collector):
    """Counts of changes by source and outcome, with what is in flight, all of one moment."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._lock = threading.Lock()
        outcomes: tuple[str, ...] = ("received", *OUTCOMES)
        self._counts: dict[str, dict[str, int]] = {source: dict.fromkeys(outcomes, 0) for source in (*sources, OTHER)}

    def add(self, source: str, outcome: str) -> None:
        with self._lock:
            self._counts[source][outcome] += 1

    def snapshot(self) -> dict[str, dict[str, int]]:
        with self._lock:
            return {source: dict(counts) for source, counts in self._counts.items()}

    def collect(self) -> Iterable[Metric]:
        events = CounterMetricFamily(
            "freshness_events", "Changes received, and what became of them", labels=("source", "outcome")
        )
        flight = GaugeMetricFamily("freshness_in_flight", "Changes received without outcome yet", labels=("source",))
        for source, counts in self.snapshot().items():
            for outcome, count in counts.items():
                events.add_metric((source, outcome), count)
            flight.add_metric((source,), in_flight(counts))
        return (events, flight)


def in_flight(counts: Mapping[str, int]) -> int:
    """Of the counts of one source by outcome: those received that have no outcome yet."""
    return counts["received"] - sum(count for outcome, count in counts.items() if outcome != "received")


class PrometheusMeter:
    """Implements `worker.ports.Meter` on a registry of its own; `render` is what /metrics answers.

    May be called from any thread. Gauges are read at scrape time: `read_gauge` names the callback, which must not raise
    and must not wait.
    """

    def __init__(self, sources: Sequence[str]) -> None:
        disable_created_metrics()
        self.registry: Final = CollectorRegistry()
        self.last_lag: Final[dict[str, float]] = {}
        self._source = _Words((*sources, OTHER))
        self._words = {label: _Words() for label in ("step", "resync", "reopen", "outcome", "oddity", "operation")}
        self._events = _Events(sources)
        self.registry.register(self._events)
        self._gauges: dict[GaugeName, Callable[[], float]] = dict.fromkeys(_GAUGES, _nothing)
        self._make()
        for name, text in _GAUGES.items():
            Gauge(f"freshness_{name}", text, registry=self.registry).set_function(
                lambda name=name: self._gauges[name]()
            )
        # A histogram without observations is visible too, so that an alert can tell 0 from absent.
        for source in sources:
            self._lag.labels(source)

    def _make(self) -> None:
        registry = self.registry

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"freshness_{name}", text, labels, registry=registry)

        self._lag = Histogram(
            "freshness_lag_seconds",
            "From the commit of a change to its chunks being stored",
            ("source",),
            registry=registry,
            buckets=LAG_BUCKETS,
        )
        self._searchable = Histogram(
            "freshness_searchable_lag_seconds",
            "From a chunk being stored to a search that finds it, now and then (the canary)",
            registry=registry,
            buckets=LAG_BUCKETS,
        )
        self._depth = Gauge(
            "freshness_queue_depth",
            "Changes waiting before or in a step; texts before embed",
            ("step",),
            registry=registry,
        )
        self._chunks = counter("chunks_total", "Chunk rows by what was done with them", "action")
        self._requests = counter("embedding_requests_total", "Embedding requests by how they ended", "outcome")
        self._tokens = counter("embedding_tokens_total", "Tokens that were embedded")
        self._cost = counter("embedding_cost_usd_total", "What embedding has cost, in dollars")
        self._resyncs = counter("resyncs_total", "Scans of a source that began", "reason")
        self._reopens = counter("stream_reopens_total", "Openings of the change stream after the first", "reason")
        self._ignored = counter("stream_ignored_total", "Events of no consequence, or of an unknown kind", "operation")
        self._odd = counter("odd_values_total", "Odd values made sensible or left out", "source", "oddity")
        self._skew = counter("clock_skew_total", "Changes whose commit time lay in our future; their lag counts as 0")

    # --- worker.ports.Meter ---

    def received(self, source: str) -> None:
        """A change came in."""
        self._events.add(self._source(source), "received")

    def settled(self, source: str, outcome: Outcome, lag: float | None) -> None:
        """A change has its outcome; `lag` in seconds from commit to stored."""
        label = self._source(source)
        self._events.add(label, outcome)
        if lag is None or not math.isfinite(lag):
            return
        if lag < 0:
            self._skew.inc()
        self.last_lag[label] = max(lag, 0.0)
        self._lag.labels(label).observe(max(lag, 0.0))

    def chunks(self, action: Literal["written", "rewritten", "removed", "kept"], count: int) -> None:
        """Chunk rows by what was done with them."""
        self._chunks.labels(action).inc(count)

    def embedded(self, outcome: str, *, tokens: int = 0, cost_usd: float = 0.0) -> None:
        """One embedding request ended."""
        self._requests.labels(self._words["outcome"](outcome)).inc()
        self._tokens.inc(tokens)
        self._cost.inc(cost_usd)

    def budget_left(self, read: Callable[[], float]) -> None:
        """Where the dollars that may still be spent today are read from."""
        self.read_gauge("embedding_budget_remaining_usd", read)

    def queued(self, step: str, depth: int) -> None:
        """How many changes wait before or in a step."""
        self._depth.labels(self._words["step"](step)).set(depth)

    def reopened(self, reason: str) -> None:
        """The stream was opened again."""
        self._reopens.labels(self._words["reopen"](reason)).inc()

    def ignored(self, operation: str) -> None:
        """The stream told of an operation of no consequence, or of an unknown one."""
        self._ignored.labels(self._words["operation"](operation)).inc()

    def resynced(self, reason: str) -> None:
        """A scan of a source began."""
        self._resyncs.labels(self._words["resync"](reason)).inc()

    def headroom(self, seconds: float) -> None:
        """How far the stored position is from the oldest entry of the history; NaN where that is unknown."""
        self.read_gauge("history_headroom_seconds", lambda: seconds)

    def buried(self, letters: int) -> None:
        """How many documents are dead-lettered now."""
        self.read_gauge("dead_letters", lambda: float(letters))

    def odd(self, source: str, oddity: str) -> None:
        """A document held an odd value."""
        self._odd.labels(self._source(source), self._words["oddity"](oddity)).inc()

    def searchable(self, lag: float) -> None:
        """The search index found a chunk so many seconds after it was stored."""
        self._searchable.observe(max(lag, 0.0))

    # --- beside the port ---

    def read_gauge(self, name: GaugeName, read: Callable[[], float]) -> None:
        """Where a gauge is read from at scrape time; NaN before that."""
        self._gauges[name] = read

    def read_log_drops(self, read: Callable[[], int]) -> None:
        """Where the count of log lines that were not written is read from; called once."""
        self.registry.register(_LogDrops(read))

    def counts(self) -> dict[str, dict[str, int]]:
        """Changes by source and outcome (`received` among the outcomes), all of one moment."""
        return self._events.snapshot()

    def render(self) -> bytes:
        """The whole in Prometheus' text format (`CONTENT_TYPE`)."""
        return generate_latest(self.registry)


class _LogDrops(Collector):
    """The count of lost log lines, kept by the log pipe itself."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        drops = CounterMetricFamily("freshness_log_lines_dropped", "Log lines that were not written")
        drops.add_metric((), self._read())
        return (drops,)
