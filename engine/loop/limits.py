"""Limits that park a rule after a bucket, with the rules that use it as an event (G13, G22).

A rule that fires too often within a minute shows a loop through the outside world: its action makes
somebody write what it detects. Firings of a bucket that catches up with changes older than a minute
do not count. The other limit: the rule's dedupe remembers too many firings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.state import MINUTE_MICROS, Fired, Parked, ParkingReason
from tidegate.engine.core.values import Firings, Plan
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.evaluate.damping.damper import Damper
from tidegate.rules.model import Settings

SETTING = "firings_per_rule_per_minute_max"


def parked_by_limits(
    fired: Sequence[Fired],
    damper: Damper,
    limits: Settings,
    plan: Plan,
    detector: Detector,
    parked: frozenset[str],
) -> tuple[Parked, ...]:
    """The rules that a bucket parks, from the instant after it on."""
    at = plan.watermark + 1
    often = too_often(fired, limits.firings_per_rule_per_minute_max, at, detector, parked)
    parked |= {one.rule for one in often}
    full = damper.overfull(limits.dedupe_keys_max, plan.watermark, parked)
    return (*often, *parked_with_users(full, at, detector, parked))


def fired_lately(
    before: Sequence[Fired], plan: Plan, firings: Sequence[Firings]
) -> tuple[Fired, ...]:
    """The firings within a minute before a bucket's `now`, the bucket's own included. A rule that
    the bucket enables is counted from this bucket on."""
    since = plan.now - MINUTE_MICROS
    kept = (
        replace(one, counts={r: n for r, n in one.counts.items() if r not in plan.enabled})
        for one in before
        if one.now > since
    )
    counts = {
        fired.rule: int(pc.sum(fired.through).as_py())
        for fired in firings
        if len(fired) and max(plan.watermark_before, _first(fired)) > since
    }
    return tuple(one for one in (*kept, Fired(plan.now, counts)) if one.counts)


def too_often(
    fired: Sequence[Fired],
    limit: int,
    instant: int,
    detector: Detector,
    parked: Collection[str] = (),
) -> tuple[Parked, ...]:
    """The rules that fired more than `limit` times (0: no limit), and those that use them: parked
    at `instant`."""
    counts = Counter[str]()
    for one in fired if limit else ():
        counts.update(one.counts)
    why = {rule: often_reason(n, limit) for rule, n in counts.items() if n > limit}
    return parked_with_users(why, instant, detector, parked)


def often_reason(count: int, limit: int) -> ParkingReason:
    """Why a rule that has fired so often within a minute is parked."""
    hint = (
        "if its actions cause what it detects, break that loop (`ignore_own: true`, `where:`); "
        f"if not, raise {SETTING}"
    )
    said = f"times within a minute, at most {limit:,} are let ({SETTING})"
    return f"it fired {count:,} {said}", hint


def parked_with_users(
    why: Mapping[str, ParkingReason],
    instant: int,
    detector: Detector,
    parked: Collection[str] = (),
) -> tuple[Parked, ...]:
    """The rules in `why`, and those that use them: parked at `instant`. `why`: by rule, the reason.
    `parked`: those that are parked already."""
    found: dict[str, Parked] = {}
    for rule, (reason, hint) in sorted(why.items()):
        if rule in parked:
            continue
        found[rule] = Parked(rule, reason, hint, instant)
        for user in sorted(detector.parked_with({rule}) - {rule, *parked}):
            found.setdefault(user, Parked(user, f"it uses {rule}", hint, instant))
    return tuple(found.values())


def _first(fired: Firings) -> int:
    """When the first firing was detected."""
    return int(fired.firings["detected_at"][0].cast(pa.int64()).as_py())
