"""What stands in the way of rules at the end of a run, as sentences (exit code 4)."""

from __future__ import annotations

from collections.abc import Container

from tidegate.engine.act.redrive import way_past
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.state import Parked


def sentence(obstacle: Entry | Parked, rules: Container[str]) -> str:
    """What is stopped, why, and the commands that get past it; `rules`: those that there are."""
    if isinstance(obstacle, Parked):
        return (
            f"rule {obstacle.rule} is parked: {obstacle.reason}\n"
            f"    {obstacle.hint}; then `tidegate enable {obstacle.rule}`"
        )
    entry = f"entry {obstacle.number} of rule {obstacle.rule}"
    if obstacle.state == "pending" and not obstacle.attempts:
        return f"{entry} waits for its turn"
    state = "waits for its next attempt" if obstacle.state == "pending" else f"is {obstacle.state}"
    return f"{entry} {state}: {obstacle.error or 'not tried'}\n    {way_past(obstacle, rules)}"
