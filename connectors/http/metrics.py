"""What a monitor reads: the rulebooks' status, and the inbox's own counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0 as CONTENT_TYPE

from tidegate.connectors.http.rulebooks import Source
from tidegate.engine.core.lifecycle import LOOKED, STATES

Status = Mapping[str, Any]
_COUNTS = {
    "buckets": ("bucket", "Buckets that were committed"),
    "moved_commits": ("adjusted_commits", "Commits whose time was moved"),
    "rejected_rows": ("rejected_rows", "Rows and signals that could not become occurrences"),
}
_DETECTIONS = {
    "firings": ("fired", "Detections of each rule that are acted on"),
    "firings_condition_failed": (
        "condition_failed",
        "Detections for which the rule's condition does not hold",
    ),
}
_INSTANTS = {
    "watermark_seconds": ("seen_until", "Up to which instant all is seen, Unix time"),
    "looked_seconds": ("looked_at", "When the sources were looked at last, Unix time"),
}
_LAGS = {
    "commits": "Commits that are visible and not taken",
    "signals": "Signals that wait",
    "seconds": "For how long the oldest commit, signal or due timer has not been taken",
}
_LEVELS = {
    "unplaced_signals": ("unplaced_signals", "Signals that no bucket has claimed"),
    "timers_pending": ("timers_pending", "Timers that are not due yet"),
}
_CARRIED = {
    "carried_instances": "Instances that are carried; one that rules share counts for each",
    "carried_keys": "Keys of which instances are carried",
}
ENTRY_STATES = ("pending", "failed", "held", "dead")
__all__ = ["CONTENT_TYPE", "Metrics"]


class Metrics:
    """Counts of this inbox, and the status of its rulebooks as figures."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._own = CollectorRegistry()
        self._requests = Counter(
            "tidegate_inbox_requests", "Requests by status", ["code"], registry=self._own
        )
        self._signals = Counter(
            "tidegate_inbox_signals", "Signals taken: new, or there before", ["was"],
            registry=self._own,
        )  # fmt: skip

    def answered(self, code: int) -> None:
        self._requests.labels(str(code)).inc()

    def wrote(self, new: int, repeated: int) -> None:
        self._signals.labels("new").inc(new)
        if repeated:
            self._signals.labels("repeated").inc(repeated)

    def text(self, of_books: Mapping[str, Status] | None) -> bytes:
        """In Prometheus' text format; without a status, `tidegate_store_up` is 0."""
        registry = CollectorRegistry()
        merged: dict[str, Metric] = {}
        for name in self._source.known if of_books is None else of_books:
            for figure in _figures(name, None if of_books is None else of_books.get(name)):
                merged.setdefault(figure.name, figure)
                if merged[figure.name] is not figure:
                    merged[figure.name].samples += figure.samples
        figures = [*merged.values(), *_of_store(of_books or {})]
        registry.register(_Collected(figures))
        return generate_latest(self._own) + generate_latest(registry)


class _Collected:
    """Figures that were taken before."""

    def __init__(self, figures: Sequence[Metric]) -> None:
        self._figures = figures

    def collect(self) -> Sequence[Metric]:
        return self._figures


def _of_store(of_books: Mapping[str, Status]) -> Iterator[Metric]:
    """What all of its rulebooks say alike."""
    for status in [*of_books.values()][:1]:
        said = "Bytes that the store takes on disk"
        yield GaugeMetricFamily("tidegate_store_bytes", said, status["store_bytes"])


def _figures(book: str, status: Status | None) -> Iterator[Metric]:
    yield _level("store_up", "Whether the store answers", {(): float(status is not None)}, book)
    if status is None:
        return
    for name, (key, said) in _COUNTS.items():
        yield _count(name, said, {(): status[key]}, book)
    for name, (key, said) in _LEVELS.items():
        if key in status:
            yield _level(name, said, {(): status[key]}, book)
    running = {(): float(status["state"] in LOOKED)}
    yield _level("running", "Whether an engine has looked at all, and goes on", running, book)
    states = {(state.replace(" ", "_"),): float(state == status["state"]) for state in STATES}
    yield _level("state", "What the engine does: 1 for one of the states", states, book, "state")
    for name, (key, said) in _INSTANTS.items():
        if status[key] is not None:
            at = {(): datetime.fromisoformat(status[key]).timestamp()}
            yield _level(name, said, at, book)
    for name, said in _LAGS.items():
        lag = status["lag"][name]
        yield _level(f"lag_{name}", said, {} if lag is None else {(): lag}, book)
    for name, (key, said) in _DETECTIONS.items():
        rules = {(row["rule"],): row[key] for row in status["rules"]}
        yield _count(name, said, rules, book, "rule")
    damped = {(row["rule"], by): n for row in status["rules"] for by, n in row["damped_by"].items()}
    said = "Detections that damping has dropped"
    yield _count("firings_damped", said, damped, book, "rule", "by")
    dead = {(row["rule"],): row["dead"] for row in status["rules"]}
    yield _level("firings_dead", "Detections of entries that are tried no more", dead, book, "rule")
    parked = {(row["rule"],): float(row["state"] == "parked") for row in status["rules"]}
    yield _level("rule_parked", "Whether a limit has parked the rule", parked, book, "rule")
    parked = {(row["script"],): float(row["state"] == "parked") for row in status["scripts"]}
    said = "Whether the script has run away and is parked"
    yield _level("script_parked", said, parked, book, "script")
    for name, said in _CARRIED.items():
        for what in ("rule", "script"):
            carried = {(row[what],): row[name] for row in status[f"{what}s"]}
            yield _level(f"{what}_{name}", said, carried, book, what)
    misfires = {(clock,): count for clock, count in status["misfires"].items()}
    said = "Occurrences of a clock that were missed and passed over"
    yield _count("misfires", said, misfires, book, "clock")
    losing = {(): float(status["losing_ground_since"] is not None)}
    said = "Whether buckets take longer than what arrives meanwhile"
    yield _level("losing_ground", said, losing, book)
    quarantined = {(): float(len(status["quarantined"]))}
    said = "Texts that have ended Spark's Java, or outlasted their deadline, twice"
    yield _level("quarantined", said, quarantined, book)
    entries = {(state,): status[f"entries_{state}"] for state in ENTRY_STATES}
    yield _level("entries", "Actions that are not finished", entries, book, "state")
    for name, said in (("commits", "Commits"), ("seconds", "Seconds")):
        lags = {(row["table"],): row[f"{name}_behind"] for row in status["tables"]}
        known = {labels: lag for labels, lag in lags.items() if lag is not None}
        said = f"{said} by which what was read is behind the table"
        yield _level(f"table_lag_{name}", said, known, book, "table")
    seconds = {(stage,): took for stage, took in status["stage_seconds"].items()}
    yield _level("stage_seconds", "What each stage of the last bucket took", seconds, book, "stage")


Values = Mapping[Any, float]  # by labels


def _level(name: str, said: str, values: Values, book: str, *labels: str) -> Metric:
    return _filled(
        GaugeMetricFamily(f"tidegate_{name}", said, labels=["rulebook", *labels]), values, book
    )


def _count(name: str, said: str, values: Values, book: str, *labels: str) -> Metric:
    return _filled(
        CounterMetricFamily(f"tidegate_{name}", said, labels=["rulebook", *labels]), values, book
    )


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values, book: str) -> Metric:
    for labels, value in values.items():
        family.add_metric([book, *labels], value)
    return family
