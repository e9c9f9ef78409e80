"""Figures for monitors: the status of the rulebooks, and the inbox's own counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0 as CONTENT_TYPE

from tidegate.connectors.http.rulebooks import Source
from tidegate.engine.core.lifecycle import EXECUTORS, LOOKED, STATES

Status = Mapping[str, Any]
_CARRIED = {
    "carried_instances": "Instances that are carried; one that rules share counts for each",
    "carried_keys": "Keys of which instances are carried",
}
_PARKED = {
    "rule": "Whether a limit has parked the rule",
    "script": "Whether the script has run away and is parked",
}
ENTRY_STATES = ("pending", "failed", "held", "dead")
__all__ = ["CONTENT_TYPE", "Metrics"]


class Metrics:
    """The counts of this inbox, and the status of its rulebooks as figures."""

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
        figures: dict[str, Metric] = {}
        for name in self._source.known if of_books is None else of_books:
            for figure in _figures(name, None if of_books is None else of_books.get(name)):
                merged = figures.setdefault(figure.name, figure)
                if merged is not figure:
                    merged.samples += figure.samples
        for status in [*(of_books or {}).values()][:1]:  # the rulebooks have one store
            said = "Bytes that the store takes on disk"
            size = GaugeMetricFamily("tidegate_store_bytes", said, status["store_bytes"])
            figures[size.name] = size
        registry = CollectorRegistry()
        registry.register(_Collected([*figures.values()]))
        return generate_latest(self._own) + generate_latest(registry)


class _Collected:
    """Figures that are known already."""

    def __init__(self, figures: Sequence[Metric]) -> None:
        self._figures = figures

    def collect(self) -> Sequence[Metric]:
        return self._figures


def _figures(book: str, status: Status | None) -> Iterator[Metric]:
    """The figures of one rulebook; without a status, that the store does not answer."""
    level = partial(_figure, GaugeMetricFamily, book)
    count = partial(_figure, CounterMetricFamily, book)
    yield level("store_up", "Whether the store answers", status is not None)
    if status is None:
        return
    rules, scripts, lag = status["rules"], status["scripts"], status["lag"]

    def of_rules(key: str) -> dict[str, float]:
        return {row["rule"]: row[key] for row in rules}

    yield count("buckets", "Buckets that were committed", status["bucket"])
    yield count("moved_commits", "Commits whose time was moved", status["adjusted_commits"])
    said = "Rows and signals that could not become occurrences"
    yield count("rejected_rows", said, status["rejected_rows"])
    said = "Signals that no bucket has claimed"
    yield level("unplaced_signals", said, status["unplaced_signals"])
    said = "Files of the state, unused ones included"
    yield level("state_files", said, status["state_files"])
    yield level("state_bytes", "Bytes of these files", status["state_bytes"])
    yield level("timers_pending", "Timers that are not due yet", status["timers_pending"])
    said = "Whether an engine has looked at all, and goes on"
    yield level("running", said, status["state"] in LOOKED)
    states = {state.replace(" ", "_"): state == status["state"] for state in STATES}
    yield level("state", "What the engine does: 1 for one of the states", states, "state")
    said = "Up to which instant all is seen, Unix time"
    yield level("watermark_seconds", said, _unix(status["seen_until"]))
    said = "When the sources were looked at last, Unix time"
    yield level("looked_seconds", said, _unix(status["looked_at"]))
    yield level("lag_commits", "Commits that are visible and not taken", lag["commits"])
    yield level("lag_signals", "Signals that wait", lag["signals"])
    said = "For how long the oldest commit, signal or due timer has not been taken"
    yield level("lag_seconds", said, lag["seconds"])
    graves = {row["rule"]: (row["rule"], *filter(None, [row["severity"]])) for row in rules}
    fired = {graves[rule]: number for rule, number in of_rules("fired").items()}
    yield count("firings", "Detections of each rule that are acted on", fired, "rule", "severity")
    said = "Detections for which the rule's condition does not hold"
    yield count("firings_condition_failed", said, of_rules("condition_failed"), "rule")
    damped = {(row["rule"], by): n for row in rules for by, n in row["damped_by"].items()}
    yield count("firings_damped", "Detections that damping has dropped", damped, "rule", "by")
    said = "Detections of entries that are tried no more"
    yield level("firings_dead", said, of_rules("dead"), "rule")
    said = "What became of detections in this hour and the 23 before it"
    lately = {(row["rule"], was): n for row in rules for was, n in row["last_day"].items()}
    yield level("firings_last_day", said, lately, "rule", "outcome")
    for what, rows in (("rule", rules), ("script", scripts)):
        parked = {row[what]: row["state"] == "parked" for row in rows}
        yield level(f"{what}_parked", _PARKED[what], parked, what)
        for name, said in _CARRIED.items():
            yield level(f"{what}_{name}", said, {row[what]: row[name] for row in rows}, what)
    said = "Occurrences of a clock that were missed and passed over"
    yield count("misfires", said, status["misfires"], "clock")
    said = "Whether buckets take longer than what arrives meanwhile"
    yield level("losing_ground", said, status["losing_ground_since"] is not None)
    detected = status["detected"]
    by_executors = None if detected is None else detected["by"] == EXECUTORS
    said = "Whether Spark's executors detected the last bucket, as far as rules have a key"
    yield level("detected_by_executors", said, by_executors)
    said = "Texts that have ended Spark's Java, or outlasted their deadline, twice"
    yield level("quarantined", said, len(status["quarantined"]))
    entries = {state: status[f"entries_{state}"] for state in ENTRY_STATES}
    yield level("entries", "Actions that are not finished", entries, "state")
    for name, unit in (("commits", "Commits"), ("seconds", "Seconds")):
        lags = {row["table"]: row[f"{name}_behind"] for row in status["tables"]}
        known = {table: lag for table, lag in lags.items() if lag is not None}
        said = f"{unit} by which what was read is behind the table"
        yield level(f"table_lag_{name}", said, known, "table")
    left: dict[tuple[str, str], float] = {}
    for one in reversed(status["retention"]["deadlines"]):  # the first one of each is kept
        left[one["need"], one["table"]] = one["left_seconds"]
    said = "In how long what is still needed of a table's past may be gone; negative: since when"
    yield level("retention_left_seconds", said, left, "need", "table")
    kept = {row["table"]: row["stands_seconds"] for row in status["retention"]["tables"]}
    said = "For how long an engine may stand still before a table's commits may be gone"
    yield level("table_kept_seconds", said, kept, "table")
    said = "What each stage of the last bucket took"
    yield level("stage_seconds", said, status["stage_seconds"], "stage")


def _figure(
    kind: type[GaugeMetricFamily | CounterMetricFamily],
    book: str,
    name: str,
    said: str,
    values: Mapping[Any, float] | float | None,
    *labels: str,
) -> Metric:
    """A family of figures. `values`: by its label, or by a tuple of its `labels`, of which the last
    may be left out; or one number; None: it is not known."""
    family = kind(f"tidegate_{name}", said, labels=["rulebook", *labels])
    known = {} if values is None else values if isinstance(values, Mapping) else {(): values}
    for of, value in known.items():
        family.add_metric([book, *((of,) if isinstance(of, str) else of)], float(value))
    return family


def _unix(instant: str | None) -> float | None:
    return None if instant is None else datetime.fromisoformat(instant).timestamp()
