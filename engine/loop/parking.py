"""Rules that a limit stops, and those that use them as events."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tidegate.engine.core.state import Parked
from tidegate.engine.detect.events.step.detector import Detector

Why = tuple[str, str]
"""A reason, and a hint."""


def parked_with_users(
    why: Mapping[str, Why], instant: int, detector: Detector, parked: Collection[str] = ()
) -> tuple[Parked, ...]:
    """The rules that stop at `instant`, by name why; `parked`: those that are stopped already."""
    found: dict[str, Parked] = {}
    for rule, (reason, hint) in sorted(why.items()):
        if rule in parked:
            continue
        found[rule] = Parked(rule, reason, hint, instant)
        for user in sorted(detector.parked_with({rule}) - {rule, *parked}):
            found.setdefault(user, Parked(user, f"it uses {rule}", hint, instant))
    return tuple(found.values())
