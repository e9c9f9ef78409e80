"""An event type: every row of it, and nothing else."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.event import Event


@shown(
    """
    equal rows | a | a@1(v=1) a@1(v=1) | [1,1] {a@1(v=1)} [1,1] {a@1(v=1)}
    of simultaneous ones the lowest in rank | on: a / context: restricted | a@1(v=1) a@1(v=2)
        | [1,1] {a@1(v=2)}
    another type | a | b@1 a@2 b@2 | [2,2] {a@2}
    null is a key | a | a@1(k=1) a@1(k=null) | k=1 [1,1] {a@1(k=1)} k=null [1,1] {a@1(k=null)}
    """
)
def test_event(row: Shown) -> None:
    check(row, Event)
