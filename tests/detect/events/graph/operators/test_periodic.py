"""`P(a, [d], c)`: a tick each d after a, while its window is open."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.periodic import Periodic


@shown(
    """
    with the closer, not with the opener | P(a, [2], c) | a@1 c@5 b@9
        | [3,3] {tick@3} [5,5] {tick@5}
    a closer with the opener closes nothing | P(a, [2], c) | a@1 c@1 b@4 | [3,3] {tick@3}
    closed a microsecond before a tick | P(a, [2], c) | a@1 c@2.999999 b@5 |
    coincident ticks are one | P(a, [2], c) | a@1 a@3 b@5 | [3,3] {tick@3} [5,5] {tick@5}
    an own terminator, end included | P(a, [2], [4]) | a@1 | [3,3] {tick@3} [5,5] {tick@5}
    time stops with a tick | P(a, [2], c) | a@1 | [3,3] {tick@3} [5,5] {tick@5} | 5
    a key that never closes | P(a, [2], c) | a@1(k=1) a@1(k=2) c@2(k=1) b@4 | k=2 [3,3] {tick@3}
    """
)
def test_periodic(row: Shown) -> None:
    check(row, Periodic)
