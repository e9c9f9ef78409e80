"""`instant(a)`: a as a point at its end, in what is only looked at."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.instant import Instant


@shown(
    """
    it may begin before a | not(instant(b ; c))[a, d] | b@1 a@2 c@3 d@4 |
    a point in time | instant(b ; c) + [9] | b@1 c@3 | [12,12] {}
    not at the instant of a | not(instant(b ; c))[a, d] | b@1 c@2 a@2 d@3 | [2,3] {a@2 d@3}
    the next b is not the first | fa(a, (x and y), c) | a@1 x@2 y@3 x@4 | [1,3] {a@1 x@2 y@3}
    each key alone | instant(b ; c) + [9] | b@1(k=1) c@2(k=2) c@3(k=1) | k=1 [12,12] {}
    """
)
def test_instant(row: Shown) -> None:
    check(row, Instant)
