"""`A(a, b, c)`: each b in a window, closed at both ends."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.aperiodic import Aperiodic


@shown(
    """
    b with the opener and with the closer | A(a, b, c) | b@0 a@1 b@1 c@2 b@2 b@3
        | [1,1] {b@1} [2,2] {b@2}
    a closer with the opener closes nothing | A(a, b, c) | a@1 c@1 b@2 | [2,2] {b@2}
    opened again | A(a, b, c) | a@1 c@2 b@3 a@4 b@5 | [5,5] {b@5}
    a composite b that begins with the opener | A(a, b ; d, c) | a@1 b@1 c@2 d@2 | [1,2] {b@1 d@2}
    a composite b that ends too late | A(a, b ; d, c) | a@1 b@2 c@3 d@4 |
    a key that never closes | A(a, b, c) | a@1(k=1) a@1(k=2) c@2(k=2) b@3(k=1) b@3(k=2)
        | k=1 [3,3] {b@3(k=1)}
    """
)
def test_aperiodic(row: Shown) -> None:
    check(row, Aperiodic)
