"""The first page: what each rulebook does, how far it is, what is wrong, what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypedDict

from tidegate.engine.control.console.listing import Books, chosen
from tidegate.engine.control.console.troubles import (
    GROWN_MIN,
    PAUSES_SEEN,
    Facts,
    name_of,
    troubles,
)
from tidegate.engine.control.state_text import behind_text, detected_text, state_text
from tidegate.engine.control.status import next_clocks, status_of
from tidegate.engine.core.text import json_text
from tidegate.engine.store import SqlStore
from tidegate.engine.store.hours import HOUR_MICROS
from tidegate.rules.model import Rulebook

BUCKETS_SHOWN = 20
CLOCKS_SHOWN = 5
CARRIED_SHOWN = 10
HOW_LOSING = (
    "A bucket loses ground if it leaves something to the next one, and the oldest of what waits is "
    "older after it than before. `since` is set once three buckets in a row do, and ends once three"
    " in a row do not, or nothing waits."
)


class Doing(TypedDict):
    """Whether it runs, and what it does. `said`: in a sentence. `since`: since when. `version`: of
    the rulebook. `detected`: who detected the last bucket, `by` and `because`, or None, and
    `detected_said`: the same in a sentence."""

    state: str
    said: str
    doing: str
    since: str | None
    holder: str | None
    standby: str | None
    stopped: str | None
    version: int
    detected: dict[str, str] | None
    detected_said: str | None


class Behind(TypedDict):
    """How far behind. `commits`, `signals`, `seconds`, `as_of`: as `lag` of the status. `said`: in
    a sentence, or None. `losing_ground_since`: see `how`. `lags`: of the last buckets, oldest
    first: bucket, at, lag_seconds, rows, seconds by stage."""

    commits: int | None
    signals: int
    seconds: float | None
    as_of: str | None
    seen_until: str | None
    said: str | None
    losing_ground_since: str | None
    how: str
    lags: list[dict[str, Any]]


class Next(TypedDict):
    """What is next. `timer`: when the next timer or clock of the running engine is due. `clocks`:
    the next occurrence of each clock: at, clock, rules."""

    timer: str | None
    late_seconds: float
    timers_pending: int
    clocks: list[dict[str, Any]]


class Size(TypedDict):
    """How big the state is. `carried`: rules and scripts that carry most: name, instances, keys.
    `hours`: of all of them, at the begin of each hour of the last day, oldest first: at,
    instances."""

    store_bytes: int
    instances: int
    keys: int
    hours: list[dict[str, Any]]
    carried: list[dict[str, Any]]


class Rules(TypedDict):
    """How many rules there are, by state."""

    total: int
    by_state: dict[str, int]


class Overview(TypedDict):
    """The first page of one rulebook. Instants are ISO 8601, UTC.

    `hours`: what became of detections in this hour of the clock, and in each of the 23 before it,
    newest first: from, to, fired, condition_failed, damped, dead. `fired` are those that are acted
    on; `dead` those whose first entry died in that hour.
    `retention`: how long until VACUUM or log cleaning outruns the engine, as the status has it.
    `rejected`: rows and signals that were rejected within the 60 minutes before `at`.
    """

    rulebook: str
    at: str
    timezone: str
    doing: Doing
    behind: Behind
    troubles: list[dict[str, Any]]
    retention: dict[str, Any]
    hours: list[dict[str, int | str]]
    rejected: int
    next: Next
    size: Size
    rules: Rules


class Page(TypedDict):
    """The overview of each rulebook, by name."""

    at: str
    rulebooks: list[Overview]


def page(store: SqlStore, books: Books, now: int, rulebook: str | None = None) -> Page:
    """The overview of one rulebook, or of all. `now`: the store's clock, microseconds. Raises
    EngineError."""
    shown = [overview(store, book, now) for book in chosen(books, rulebook)]
    return {"at": json_text.instant(now) or "", "rulebooks": shown}


def overview(store: SqlStore, book: Rulebook, now: int) -> Overview:
    """The overview of a rulebook, of one state of the store."""
    with store.snapshot():
        status = status_of(store, book)
        trends = store.of(book.name).trends
        buckets = trends.buckets(BUCKETS_SHOWN)
        rejected = trends.rejected_since(now - HOUR_MICROS)
        tables = trends.commits([row["table"] for row in status["tables"]], PAUSES_SEEN)
        arrivals = {f"table {name}": times for name, times in tables.items()}
        signals = trends.signals()
        arrivals |= {f"signal {name}": times[:PAUSES_SEEN] for name, times in signals.items()}
        sizes = store.of(book.name).sizes
        rows = (*status["rules"], *status["scripts"])
        large = [name_of(row) for row in rows if row["carried_instances"] >= GROWN_MIN]
        grown = sizes.of_rules(large, now)
        facts = Facts(book, status, buckets, arrivals, trends.clock(), rejected, grown, now)
        return {
            "rulebook": book.name,
            "at": json_text.instant(now) or "",
            "timezone": book.timezone,
            "doing": _doing(status),
            "behind": _behind(status, buckets),
            "troubles": [asdict(trouble) for trouble in troubles(facts)],
            "retention": status["retention"],
            "hours": store.of(book.name).hours.of_all(now),
            "rejected": rejected,
            "next": {
                "timer": status["next_timer"],
                "late_seconds": status["next_timer_late_seconds"],
                "timers_pending": status["timers_pending"],
                "clocks": next_clocks(book, status["watermark_micros"], CLOCKS_SHOWN),
            },
            "size": _size(status, sizes.totals(now)),
            "rules": {
                "total": len(status["rules"]),
                "by_state": dict(Counter(row["state"] for row in status["rules"])),
            },
        }


def _doing(status: Mapping[str, Any]) -> Doing:
    return {
        "state": status["state"],
        "said": state_text(status),
        "doing": status["doing"],
        "since": status["state_since"],
        "holder": status["lease_holder"],
        "standby": status["standby"],
        "stopped": status["stopped"],
        "version": status["version"],
        "detected": status["detected"],
        "detected_said": detected_text(status),
    }


def _behind(status: Mapping[str, Any], buckets: list[dict[str, Any]]) -> Behind:
    lag = status["lag"]
    return {
        "commits": lag["commits"],
        "signals": lag["signals"],
        "seconds": lag["seconds"],
        "as_of": lag["as_of"],
        "seen_until": status["seen_until"],
        "said": behind_text(status),
        "losing_ground_since": status["losing_ground_since"],
        "how": HOW_LOSING,
        "lags": buckets,
    }


def _size(status: Mapping[str, Any], hours: Mapping[int, int]) -> Size:
    rows = [
        {
            "name": name_of(row),
            "instances": row["carried_instances"],
            "keys": row["carried_keys"],
        }
        for row in (*status["rules"], *status["scripts"])
        if row["carried_instances"]
    ]
    rows.sort(key=lambda row: (-row["instances"], row["name"]))
    return {
        "store_bytes": status["store_bytes"],
        "instances": sum(row["instances"] for row in rows),
        "keys": sum(row["keys"] for row in rows),
        "hours": [{"at": json_text.instant(at), "instances": n} for at, n in hours.items()],
        "carried": rows[:CARRIED_SHOWN],
    }
