"""`a + [d]`: the point d after a, with nothing of a."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.plus import Plus


@shown(
    """
    after the last line | a + [2] | a@1 a@2 | [3,3] {} [4,4] {}
    two at one instant | a + [2] | a@1(v=1) a@1(v=2) | [3,3] {}
    time stops short of it | a + [2] | a@1 |  | 2.999999
    time stops with it | a + [2] | a@1 | [3,3] {} | 3
    what follows comes after the point | (a + [2]) ; b | a@1 b@3 b@4 | [3,4] {b@4}
    each key alone | (a + [2]) ; b | a@1(k=1) a@2(k=2) b@4(k=1) b@4(k=2) | k=1 [3,4] {b@4(k=1)}
    """
)
def test_plus(row: Shown) -> None:
    check(row, Plus)
