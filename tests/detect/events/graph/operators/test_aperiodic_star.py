"""`A*(a, b, c)`: one detection for a closed window, with every b in it."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.aperiodic_star import AperiodicStar


@shown(
    """
    b with the opener and with the closer | A*(a, b, c) | b@0 a@1 b@1 c@2 b@2 b@3 | [1,2] {b@1 b@2}
    nothing inside | A*(a, b, c) | a@1 c@2 | [1,2] {}
    of two windows the later start; closed once | A*(a, b, c) | a@1 b@2 a@3 b@4 c@5 c@6
        | [3,5] {b@4}
    two openers at one instant | A*(a, b, c) | a@1(v=1) a@1(v=2) b@2 c@3 | [1,3] {b@2}
    a composite b that begins before | A*(a, b ; d, c) | b@0 a@1 d@2 c@3 | [1,3] {}
    a key that never closes | A*(a, b, c) | a@1(k=1) a@1(k=2) b@2(k=1) b@2(k=2) c@3(k=2)
        | k=2 [1,3] {b@2(k=2)}
    """
)
def test_aperiodic_star(row: Shown) -> None:
    check(row, AperiodicStar)
