"""The log lines of a bucket: which rules fired, for how many keys; which commits were moved."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import pyarrow.compute as pc

from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.state import StoredBucket
from tidegate.engine.core.text.layout import counted
from tidegate.engine.core.text.times import micros_text
from tidegate.engine.core.values import Firings, Moved

log = logging.getLogger(__name__)
MOVED_TOLD_MAX = 10  # commits of a bucket; the others are counted
MOVED_WARNED_MICROS = 1_000_000  # less than this is how clocks differ, and tables under load


def tell(taken: StoredBucket) -> None:
    """Log a bucket once it is committed, without values of the user's tables."""
    for parked in taken.parked:
        log.error("%s is parked: %s; %s", parked.rule, parked.reason, parked.hint)
    _tell_moved(taken.plan.moved)
    for clock, count in taken.misfires.items():
        missed, until = counted(count, "occurrence"), taken.plan.passed_over[clock]
        said = "clock %s: %s missed up to %sZ, passed over (misfire)"
        log.warning(said, clock, missed, micros_text(until))
    for entry in taken.entries:
        if entry.state == "dead":
            log.error(
                "rule %s: entry %d is dead: %s", entry.rule, entry.number, entry.progress.error
            )
    if log.isEnabledFor(logging.INFO):
        asked = [entry for entry in taken.entries if entry.kind == "condition"]
        later = {entry.rule for entry in asked if entry.state != "dead"}
        for fired in sorted(taken.firings, key=_first):
            told = fired.some(pc.not_equal(fired.firings["condition"], "dead"))
            if len(told) and fired.rule not in later:
                log.info("%s %s", fired.rule, fired_text(told))


def awaited_text(waiting: Iterable[Waiting]) -> str | None:
    """The text that says which open entry is due first; None if all are held."""
    pending = [one for one in waiting if one.entry.state == "pending"]
    if not pending:
        return None
    first = min(pending, key=lambda one: (one.due, one.entry.number))
    said = f"entry {first.entry.number} of rule {first.entry.rule}"
    if first.due:
        said += f", to be tried again at {micros_text(first.due)}Z"
    return f"{said}, and {len(pending) - 1:,} more" if len(pending) > 1 else said


def _tell_moved(moved: Sequence[Moved]) -> None:
    """Log the commits that were moved in time (G1)."""
    for one in moved[:MOVED_TOLD_MAX]:
        why = "it comes after the version before and what buckets hold already"
        if one.logged > one.instant:
            why = "its writer's clock is ahead (skew_max_seconds)"
        far = abs(one.logged - one.instant) >= MOVED_WARNED_MICROS
        log.log(
            logging.WARNING if far else logging.INFO,
            "table %s: version %d is moved from %sZ to %sZ: %s",
            one.table,
            one.version,
            micros_text(one.logged),
            micros_text(one.instant),
            why,
        )
    if len(moved) > MOVED_TOLD_MAX:
        more = counted(len(moved) - MOVED_TOLD_MAX, "commit")
        log.warning("%s more are moved in time; `tidegate status` has the last of them", more)


def _first(fired: Firings) -> tuple[int, str]:
    """When the first of a rule's firings was detected, and the rule: their order in the log is the
    same whoever has detected them."""
    instants = fired.firings["detected_at"].cast("int64")
    return (instants[0].as_py() if len(fired) else 0, fired.rule)


def fired_text(fired: Firings) -> str:
    """What became of a rule's detections: `fired for 2 keys; 1 more damped`."""
    held = fired.acted_on.firings
    count, keys = held.num_rows, 0
    if fired.key_names:
        keys = held.group_by(list(fired.key_names)).aggregate([]).num_rows
    dropped = sum(fired.damped.values())
    failed = len(fired) - count - dropped
    rest = f"; its condition does not hold for {failed:,} more" if failed else ""
    if not count and dropped:
        return f"did not fire: {counted(dropped, 'firing')} damped{rest}"
    if not count:
        return f"did not fire: its condition holds for none of {counted(len(fired), 'detection')}"
    rest += f"; {dropped:,} more damped" if dropped else ""
    times = "fired" if count == max(keys, 1) else f"fired {count:,} times"
    of = f" for {counted(keys, 'key')}" if keys else ""
    return f"{times}{of}{rest}"
