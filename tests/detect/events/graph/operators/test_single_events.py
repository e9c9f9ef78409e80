"""`cumulative` of single occurrences: those that end together are one detection."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.single_events import AtOnce


@shown(
    """
    simultaneous ones together | on: a or b / context: cumulative | a@1 a@1 b@1 b@2
        | [1,1] {a@1 a@1 b@1} [2,2] {b@2}
    each key alone | on: a or b / context: cumulative | a@1(k=1) b@1(k=2) a@1(k=1)
        | k=1 [1,1] {a@1(k=1) a@1(k=1)} k=2 [1,1] {b@1(k=2)}
    that wait as long | on: not(b)[a, [2 s]] / context: cumulative | a@1 a@1 a@2 c@9
        | [1,3] {a@1 a@1} [2,4] {a@2}
    """
)
def test_at_once(row: Shown) -> None:
    check(row, AtOnce)
