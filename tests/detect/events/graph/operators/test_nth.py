"""`a[i]`: the i-th since activation, once."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.nth import Nth


@shown(
    """
    not the next ones | a[2] | a@1 a@2 a@3 a@4 | [2,2] {a@2}
    never reached | a[3] | a@1 a@2 |
    simultaneous ones count in order of rank | a[2] | a@1(v=1) a@1(v=3) a@1(v=2) | [1,1] {a@1(v=2)}
    a composite counts once per instant | (a and b)[2] | a@1 b@1 b@2 b@3 | [1,2] {a@1 b@2}
    each key counts alone | a[2] | a@1(k=1) a@2(k=2) a@3(k=1) | k=1 [3,3] {a@3(k=1)}
    """
)
def test_nth(row: Shown) -> None:
    check(row, Nth)
