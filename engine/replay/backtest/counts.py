"""What became of the detections of a backtest, counted by rule, by period and by key.

Example: on 2026-03-02 `pay` was detected five times. Three fired, one was damped, and the condition
of one failed. `by_rule` says so; `by_period` and `busiest` count the three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.core.values import Int64
from tidegate.engine.replay.backtest.model import Backtest, Span

FATES = ("fired", "condition_failed", "damped", "dead", "unasked")
"""fired: there was no condition, or it held, and nothing dropped it. unasked: nothing dropped it,
and its condition was not asked (`--conditions skip`); it would fire if that held."""
UNITS = ("day", "week", "month", "year")
"""Periods of the zone of a span. Weeks begin on Monday."""

_OF_CONDITION = pa.table(
    {
        "condition": ["none", "held", "failed", "dead", "skipped"],
        "fate": ["fired", "fired", "condition_failed", "dead", "unasked"],
    }
)


@dataclass(frozen=True, slots=True)
class Periods:
    """How many fired in each period. `starts`: the first day of each, since the epoch, without
    gaps. `counts`: by rule, a number for each period; rules in which none fired have zeros."""

    unit: str
    starts: Int64
    counts: Mapping[str, Int64]


@dataclass(frozen=True, slots=True)
class KeyCount:
    """How many of a rule fired for one key, a JSON object."""

    rule: str
    key: str
    count: int


def asked_for(found: Backtest) -> pa.Table:
    """The detections of the rules that are asked for (`RuleFound.shown`)."""
    names = pa.array([rule.name for rule in found.rules if rule.shown], pa.string())
    return found.firings.filter(pc.is_in(found.firings["rule"], names))


def fates(firings: pa.Table) -> pa.ChunkedArray:
    """What became of each detection: a word of `FATES`."""
    at = pc.index_in(firings["condition"], _OF_CONDITION["condition"].combine_chunks())
    decided = _OF_CONDITION["fate"].combine_chunks().take(at.combine_chunks())
    let = pc.is_in(decided, pa.array(["fired", "unasked"]))
    dropped = pc.is_valid(firings["damped"]).combine_chunks()
    return pa.chunked_array([pc.if_else(pc.and_(let, dropped), "damped", decided)])


def fired(firings: pa.Table) -> pa.ChunkedArray:
    """Whether each detection fired, or would if its condition held, which was not asked."""
    return pc.is_in(fates(firings), pa.array(["fired", "unasked"]))


def by_rule(found: Backtest) -> dict[str, dict[str, int]]:
    """By rule that was asked for, in the rulebook's order: a count for each of `FATES`."""
    counts = {rule.name: dict.fromkeys(FATES, 0) for rule in found.rules if rule.shown}
    firings = asked_for(found)
    table = pa.table({"rule": firings["rule"], "fate": fates(firings)})
    for row in table.group_by(["rule", "fate"]).aggregate([([], "count_all")]).to_pylist():
        counts[row["rule"]][row["fate"]] = row["count_all"]
    return counts


def by_period(found: Backtest, periods_max: int) -> Periods:
    """How many fired in each period of the span, by the end of the firings. The unit is the
    shortest with at most `periods_max` periods."""
    firings = asked_for(found)
    firings = firings.filter(fired(firings))
    days = local_days(firings["end"].cast(pa.int64()).to_numpy(), found.span.zone)
    first, last = _days(found.span, days)
    every = np.arange(first, last + 1)
    for unit in UNITS:
        starts = np.unique(_starts(every, unit))
        if len(starts) <= periods_max:
            break
    at = np.searchsorted(starts, _starts(days, unit))
    rules = pa.array([*by_rule(found)], pa.string())
    number = pc.index_in(firings["rule"], rules).to_numpy()
    counts = np.bincount(number * len(starts) + at, minlength=len(rules) * len(starts))
    by_name = zip(rules.to_pylist(), counts.reshape(-1, len(starts)), strict=True)
    return Periods(unit, starts, dict(by_name))


def busiest(found: Backtest, keys_max: int) -> list[KeyCount]:
    """The keys for which most fired, with their rules; those of rules without a key are none."""
    firings = asked_for(found)
    firings = firings.filter(fired(firings))
    keyed = firings.filter(pc.invert(pc.is_in(firings["key"], pa.array(["{}"]))))
    table = keyed.group_by(["rule", "key"]).aggregate([([], "count_all")])
    order = [("count_all", "descending"), ("rule", "ascending"), ("key", "ascending")]
    rows = table.take(pc.select_k_unstable(table, keys_max, order)).to_pylist()
    return [KeyCount(row["rule"], row["key"], row["count_all"]) for row in rows]


def local_days(instants: Int64, zone: str) -> Int64:
    """The days of instants in a zone, since the epoch."""
    local = pc.local_timestamp(pa.array(instants).cast(INSTANT).cast(pa.timestamp("us", zone)))
    days: Int64 = np.floor_divide(local.cast(pa.int64()).to_numpy(), 86_400_000_000)
    return days


def _days(span: Span, days: Int64) -> tuple[int, int]:
    """The first and the last day of a span. A day of which it holds but the first instant counts
    only if something fired then."""
    ends = np.array([span.begin, max(span.begin, span.end - 1)], np.int64)
    first, last = local_days(ends, span.zone).tolist()
    return min([first, *days[:1].tolist()]), max([last, *days[-1:].tolist()])


def _starts(days: Int64, unit: str) -> Int64:
    """The first days of the periods in which days lie."""
    dates = pa.array(days.astype(np.int32)).cast(pa.date32())
    floor = pc.floor_temporal(dates, unit=unit, week_starts_monday=True)
    starts: Int64 = floor.cast(pa.int32()).to_numpy().astype(np.int64)
    return starts
