"""`P*(a, [d], c)`: the ticks of a closed window in one detection."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.periodic_star import PeriodicStar


@shown(
    """
    a tick with the closer | P*(a, [2], c) | a@1 c@3 | [1,3] {tick@3}
    closed before the first tick | P*(a, [2], c) | a@1 c@2.999999 | [1,2.999999] {}
    of two windows the later start; closed once | P*(a, [2], c) | a@1 a@2 c@5 c@6 | [2,5] {tick@4}
    an own terminator, end included | P*(a, [2], [4]) | a@1 | [1,5] {tick@3 tick@5}
    time stops short of it | P*(a, [2], [4]) | a@1 |  | 4.999999
    a key that never closes | P*(a, [2], c) | a@1(k=1) a@1(k=2) c@4(k=2) b@9 | k=2 [1,4] {tick@3}
    """
)
def test_periodic_star(row: Shown) -> None:
    check(row, PeriodicStar)
