"""Rules that stop after a bucket, because they fire too often or remember too much (G13)."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.engine.core.state import Fired, Parked
from tidegate.engine.core.values import Plan
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.evaluate.damping.damper import Damper
from tidegate.engine.loop.limits import too_often
from tidegate.engine.loop.parking import parked_with_users
from tidegate.rules.model import Settings


def overdone(
    fired: Sequence[Fired],
    damper: Damper,
    limits: Settings,
    plan: Plan,
    detector: Detector,
    parked: frozenset[str],
) -> tuple[Parked, ...]:
    """The rules that stop with the instant after a bucket; `parked`: those that have stopped."""
    at = plan.watermark + 1
    most = limits.firings_per_rule_per_minute_max
    often = too_often(fired, most, at, detector, parked)
    parked |= {one.rule for one in often}
    full = damper.overfull(limits.dedupe_keys_max, plan.watermark, parked)
    return (*often, *parked_with_users(full, at, detector, parked))
