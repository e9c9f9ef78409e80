"""Words for what a report shows: keys, instants in the rulebook's zone, periods, spans, fates.

All are plain text of others: what shows it escapes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.core.text.layout import age_text, counted, pairs_text
from tidegate.engine.core.text.times import day_text, micros_text
from tidegate.engine.core.values import Int64
from tidegate.engine.replay.backtest.counts import Periods
from tidegate.engine.replay.backtest.model import Backtest, RuleFound

WORDS = {
    "fired": "fired",
    "condition_failed": "condition failed",
    "damped": "damped",
    "dead": "dead",
    "unasked": "condition not asked",
}
"""What became of a detection, for people."""


def key_label(key: str | None) -> str:
    """A key as `account_id=7, day=2026-03-02`; nothing for a rule without one."""
    if key is None:
        return "null"
    return pairs_text(json.loads(key, parse_float=Decimal, parse_int=Decimal))


def instant_labels(instants: Int64, zone: str) -> list[str]:
    """Instants as `2026-03-02 07:00:00`, with a fraction where they have one, in a zone."""
    local = pc.local_timestamp(pa.array(instants).cast(INSTANT).cast(pa.timestamp("us", zone)))
    return [micros_text(at).replace("T", " ") for at in local.cast(pa.int64()).to_pylist()]


def instant_label(instant: int, zone: str) -> str:
    """As `instant_labels`, one."""
    return instant_labels(np.array([instant], np.int64), zone)[0]


def period_labels(periods: Periods) -> list[str]:
    """Periods as `2026-03-02`, `week of 2026-03-02`, `2026-03`, `2026`."""
    days = [day_text(day) for day in periods.starts.tolist()]
    match periods.unit:
        case "week":
            return [f"week of {day}" for day in days]
        case "month" | "year":
            return [day.rsplit("-", 1 if periods.unit == "month" else 2)[0] for day in days]
    return days


def span_label(found: Backtest) -> str:
    """`from 2026-03-01 00:00:00 to 2026-04-01 00:00:00 (UTC); 1,203 rows of changes read`. The rows
    of an update are two."""
    zone = found.span.zone
    begin, end = (instant_label(at, zone) for at in (found.span.begin, found.span.end))
    read = f"{counted(found.rows, 'row')} of changes read"
    if found.warm_up:
        read += f", from {age_text(found.warm_up / 1_000_000)} before on"
        read += " (what fired in that warm-up is not counted)"
    return f"from {begin} to {end} ({zone}); {read}"


def fired_label(counts: Mapping[str, Mapping[str, int]]) -> str:
    """What bars and keys count: `fired`, or `fired, or would if its condition held`."""
    unasked = any(of_rule["unasked"] for of_rule in counts.values())
    return "fired, or would if its condition held (not asked)" if unasked else "fired"


def parked_labels(found: Backtest) -> list[str]:
    """A sentence for each rule that a limit would have parked. Some limits stop it here, too; of
    one that fires too often, what fired after that is counted."""
    return [
        _parked(found, rule, rule.parked_at) for rule in found.rules if rule.parked_at is not None
    ]


def _parked(found: Backtest, rule: RuleFound, at: int) -> str:
    said = f"rule {rule.name} would be parked at {instant_label(at, found.span.zone)}"
    why = f": {rule.parked_why}" if rule.parked_why else ""
    hint = f"; {rule.hint}" if rule.hint else ""
    firings = found.firings.filter(pc.equal(found.firings["rule"], rule.name))
    later = int(pc.sum(pc.greater(firings["end"].cast(pa.int64()), at)).as_py() or 0)
    then = (
        f"{counted(later, 'detection')} after that {'is' if later == 1 else 'are'} counted here"
        if later
        else ("nothing after that is counted")
    )
    return f"{said}{why}{hint}. Live nothing of it would follow; {then}"


def sums(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """The counts of all rules together, by fate."""
    return {fate: sum(of_rule[fate] for of_rule in counts.values()) for fate in WORDS}


def fates_shown(counts: Mapping[str, int]) -> Sequence[str]:
    """The fates that a report has a column for: those that all know, and others that are there."""
    return [fate for fate in WORDS if fate != "unasked" or counts["unasked"]]
