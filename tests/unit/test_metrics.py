"""The figures: names of the contract, closed label sets, conservation in every scrape."""

import math
import threading
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from worker.model import Outcome
from worker.observe.metrics import OUTCOMES, PrometheusMeter, in_flight
from worker.ports import Meter

NAMES = (  # fixed: alerts and dashboards use them
    "lag_seconds",
    "searchable_lag_seconds",
    "watermark_age_seconds",
    "history_headroom_seconds",
    "events_total",
    "queue_depth",
    "embedding_requests_total",
    "embedding_tokens_total",
    "embedding_cost_usd_total",
    "chunks_total",
    "dead_letters",
    "resyncs_total",
    "stream_reopens_total",
    "leader",
    "ready",
)
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(meter: PrometheusMeter) -> Series:
    """Every sample of a scrape, by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(meter.render().decode())
        for sample in family.samples
    }


def value(meter: PrometheusMeter, name: str, **labels: str) -> float:
    """One sample of a scrape."""
    return scrape(meter)[f"freshness_{name}", tuple(sorted(labels.items()))]


def test_every_name_of_the_contract_is_there_from_the_start() -> None:
    """Before anything happened each metric is announced, so that alerts can tell nothing from absent."""
    text = PrometheusMeter(["spots"]).render().decode()
    for name in NAMES:
        assert f"# TYPE freshness_{name} " in text


def test_it_is_the_port() -> None:
    """The meter has the shape that the pipeline was promised, and each call shows."""
    meter = PrometheusMeter(["spots"])
    port: Meter = meter
    port.received("spots")
    port.settled("spots", "applied", 0.4)
    port.chunks("written", 3)
    port.embedded("ok", tokens=7, cost_usd=0.25)
    port.queued("embed", 5)
    port.reopened("Unreachable")
    port.resynced("history_lost")
    port.odd("spots", "bad_date")
    meter.searchable(1.2)
    assert value(meter, "events_total", source="spots", outcome="applied") == 1
    assert value(meter, "lag_seconds_sum", source="spots") == 0.4
    assert value(meter, "chunks_total", action="written") == 3
    assert value(meter, "embedding_requests_total", outcome="ok") == 1
    assert value(meter, "embedding_tokens_total") == 7
    assert value(meter, "embedding_cost_usd_total") == 0.25
    assert value(meter, "queue_depth", step="embed") == 5
    assert value(meter, "stream_reopens_total", reason="Unreachable") == 1
    assert value(meter, "resyncs_total", reason="history_lost") == 1
    assert value(meter, "odd_values_total", source="spots", oddity="bad_date") == 1
    assert value(meter, "searchable_lag_seconds_count") == 1


def test_outcomes_are_the_models() -> None:
    """No outcome of the model lacks a series, and none is made up."""
    assert get_args(Outcome) == OUTCOMES


@given(st.lists(st.tuples(st.sampled_from(["spots", "docs", "?"]), st.sampled_from(OUTCOMES)), max_size=40), st.data())
def test_conservation(changes: list[tuple[str, Outcome]], data: st.DataObject) -> None:
    """Received = settled + in flight, for every source, whatever the order."""
    meter = PrometheusMeter(["spots", "docs"])
    settled = data.draw(st.integers(0, len(changes)))
    for source, _ in changes:
        meter.received(source)
    for source, outcome in changes[:settled]:
        meter.settled(source, outcome, None)
    counts = meter.counts()
    assert sum(row["received"] for row in counts.values()) == len(changes)
    assert sum(in_flight(row) for row in counts.values()) == len(changes) - settled
    for source, row in counts.items():
        assert value(meter, "in_flight", source=source) == in_flight(row) >= 0


def test_a_scrape_is_of_one_moment() -> None:
    """While another thread counts pairs, no scrape sees an outcome without its arrival."""
    meter = PrometheusMeter(["spots"])
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            meter.received("spots")
            meter.settled("spots", "applied", None)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        seen = {value(meter, "in_flight", source="spots") for _ in range(50)}
    finally:
        done.set()
        thread.join()
    assert seen <= {0.0, 1.0}


def test_no_document_can_make_a_series() -> None:
    """Unknown sources and odd words count as `other`; a flood of words does not grow the scrape without end."""
    meter = PrometheusMeter(["spots"])
    meter.received("users; DROP")
    meter.settled("users; DROP", "applied", 0.1)
    meter.odd("users; DROP", 'x"y\n')
    assert value(meter, "events_total", source="other", outcome="applied") == 1
    assert value(meter, "odd_values_total", source="other", oddity="other") == 1
    for number in range(5000):
        meter.reopened(f"reason{number}")
    series = [labels for name, labels in scrape(meter) if name == "freshness_stream_reopens_total"]
    assert len(series) < 60


def test_lag_never_goes_back() -> None:
    """A commit in our future counts as no lag, and as skew; an unknown lag counts as nothing (K1)."""
    meter = PrometheusMeter(["spots"])
    meter.settled("spots", "applied", -3600.0)
    meter.settled("spots", "applied", None)
    meter.settled("spots", "applied", math.nan)
    assert value(meter, "lag_seconds_count", source="spots") == 1
    assert value(meter, "lag_seconds_sum", source="spots") == 0
    assert value(meter, "clock_skew_total") == 1


def test_gauges_are_read_at_scrape_time() -> None:
    """Unbound gauges say NaN; bound ones say what is true when asked."""
    meter = PrometheusMeter(["spots"])
    assert math.isnan(value(meter, "history_headroom_seconds"))
    ages = [5.0]
    meter.read_gauge("watermark_age_seconds", lambda: ages[-1])
    meter.read_log_drops(lambda: 4)
    assert value(meter, "watermark_age_seconds") == 5
    ages.append(6.0)
    assert value(meter, "watermark_age_seconds") == 6
    assert value(meter, "log_lines_dropped_total") == 4


@pytest.mark.parametrize("lag", [0.1, 0.4, 0.9, 4.9])
def test_buckets_tell_fresh_from_late(lag: float) -> None:
    """Around the promised figures (1 s, 5 s) there are bounds close enough to tell."""
    meter = PrometheusMeter(["spots"])
    meter.settled("spots", "applied", lag)
    bounds = sorted(
        float(dict(labels)["le"])
        for (name, labels), count in scrape(meter).items()
        if name == "freshness_lag_seconds_bucket" and count == 1
    )
    assert lag <= bounds[0] <= max(2 * lag, 0.5)
